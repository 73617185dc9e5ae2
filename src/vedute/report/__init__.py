"""The HTML page about a run, and the folder it is made from."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
