"""Comparisons of all methods with other imputers."""
