"""Methods with networks, one file each."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
