"""The numerical engine of the fills: one table of all views, its factors and regressions."""
