"""The HTML page about a run, and the folder it is made from."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
