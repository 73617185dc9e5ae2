"""Datasets of pictures, rendered or with captions; `vedute` finds them by entry points."""
