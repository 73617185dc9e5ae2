"""Code shared by several methods with networks."""
