"""Experiments without a study, one script each."""
