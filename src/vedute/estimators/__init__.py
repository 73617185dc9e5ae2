"""The scikit-learn interface of every method: settings, fit, and the verbs."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
