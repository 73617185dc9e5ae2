"""What a user has becomes Views, and comes back in the user's own types."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
