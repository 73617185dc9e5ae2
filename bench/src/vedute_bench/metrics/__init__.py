"""Significance of differences between methods, and colors of pictures and words."""
