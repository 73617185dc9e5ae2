"""The scikit-learn interface of every method: settings, fit, and the verbs."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
