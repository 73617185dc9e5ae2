"""Significance of differences between methods, and colors in images and sentences."""
