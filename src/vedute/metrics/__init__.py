"""Scores: arrays in, numbers out."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
