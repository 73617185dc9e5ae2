"""Helpers shared by the figures of studies."""
