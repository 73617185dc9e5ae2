"""The HTML page about a run, and the folder it is made from."""
