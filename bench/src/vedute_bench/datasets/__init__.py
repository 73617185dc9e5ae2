"""Image datasets, rendered or with captions; `vedute` finds them by entry points."""
