"""Scores: arrays in, numbers out."""
