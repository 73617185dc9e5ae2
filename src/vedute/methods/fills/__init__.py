"""Methods without networks, one file each: baselines that fill in tables."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
