"""The parts of the soak, one file each: `cases(batch)` gives the names and functions of its cases.

A case gets an empty folder and returns a word for what happened; what is wrong raises.
"""
