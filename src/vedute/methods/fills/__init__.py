"""Methods without networks, one file each: baselines that fill in tables."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
