"""The scikit-learn face of every method: settings, fit, and the verbs."""
