"""Studies: planned, run, recorded, tabulated."""
