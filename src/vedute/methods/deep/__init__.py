"""Methods with networks, one file each."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
