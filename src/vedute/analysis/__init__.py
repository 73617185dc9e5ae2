"""Analyses of a dataset: inspect, compare, tune, predict views from views."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
