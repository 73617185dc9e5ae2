"""Tensor mathematics and networks; nothing here knows a method."""
