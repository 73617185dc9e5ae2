"""Questions about one's own data: inspect, compare, tune, predict views from views."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
