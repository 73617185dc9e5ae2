"""Scores: arrays in, numbers out."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
