"""Input of users as Views, and results in their own types."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
