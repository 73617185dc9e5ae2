"""Input of users as Views, and results in their own types."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
