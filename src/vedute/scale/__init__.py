"""What leaves one process, or does not fit into its memory: ranks, workers, Dask, feeds."""

from vedute.data import lazily

__getattr__ = lazily.submodules(__name__)
