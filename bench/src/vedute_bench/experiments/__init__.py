"""Experiments of one script each; none has a study."""
