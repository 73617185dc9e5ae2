"""Analyses of a dataset: inspect, compare, tune, predict views from views."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
