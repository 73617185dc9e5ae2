"""Parts of the soak, one file each: `cases(batch)` yields the names and functions of its cases.

A case gets an empty folder and returns a word for its outcome; errors are raised.
"""
