"""What leaves one process, or does not fit into its memory: ranks, workers, Dask, feeds."""

from vedute.data import plugins

__getattr__ = plugins.submodules(__name__)
