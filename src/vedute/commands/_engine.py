"""The options --engine and --scheduler: where many fits run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Annotated

import typer

Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="loky|dask|ray|spark",
        help="What runs the fits, by joblib.",
        show_default="this process",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Address of a running engine.",
        show_default="started here",
    ),
]
NEEDED = {"dask": "distributed", "ray": "ray", "spark": "joblibspark"}  # by the extra's name


@contextmanager
def running(engine: str | None, scheduler: str | None, jobs: int | None = None) -> Iterator[None]:
    """A context in which joblib runs on an engine; jobs: parallel tasks of one started here."""
    if engine is None:
        if scheduler is not None:
            raise ValueError("--scheduler is the address of an engine; name it with --engine")
        yield
        return
    if engine not in STARTS:
        raise ValueError(f"no engine {engine!r}; choose from {', '.join(STARTS)}")
    if scheduler is not None and jobs is not None:
        raise ValueError(f"--jobs is for engines started here; the one at {scheduler} has its own")
    if find_spec(NEEDED.get(engine, "joblib")) is None:
        raise ImportError(f"--engine {engine} needs: pip install 'vedute[{engine}]'")
    with STARTS[engine](scheduler, jobs):
        yield


@contextmanager
def _loky(scheduler: str | None, jobs: int | None) -> Iterator[None]:
    from joblib import parallel_config

    from vedute.scale import backends

    if scheduler is not None:
        raise ValueError("loky has no scheduler, it runs on this machine; leave --scheduler out")
    with parallel_config("loky", n_jobs=jobs or backends.cores()):
        yield


@contextmanager
def _dask(scheduler: str | None, jobs: int | None) -> Iterator[None]:
    from distributed import Client, LocalCluster
    from joblib import parallel_config

    from vedute.scale import backends

    if scheduler is not None:
        with Client(scheduler), parallel_config("dask"):
            yield
        return
    local = LocalCluster(
        n_workers=jobs or backends.cores(), threads_per_worker=1, dashboard_address=None
    )
    with local, Client(local), parallel_config("dask"):
        yield


@contextmanager
def _ray(scheduler: str | None, jobs: int | None) -> Iterator[None]:
    import ray
    from joblib import parallel_config
    from ray.util.joblib import register_ray

    ray.init(address=scheduler, num_cpus=jobs)
    try:
        register_ray()
        with parallel_config("ray", n_jobs=-1):
            yield
    finally:
        ray.shutdown()


@contextmanager
def _spark(scheduler: str | None, jobs: int | None) -> Iterator[None]:
    from joblib import parallel_config
    from joblibspark import register_spark
    from pyspark.sql import SparkSession

    from vedute.scale import backends

    master = scheduler or f"local[{jobs or backends.cores()}]"
    session = SparkSession.builder.appName("vedute").master(master).getOrCreate()
    try:
        register_spark()
        with parallel_config("spark", n_jobs=session.sparkContext.defaultParallelism):
            yield
    finally:
        session.stop()


Start = Callable[[str | None, int | None], AbstractContextManager[None]]
STARTS: dict[str, Start] = {"loky": _loky, "dask": _dask, "ray": _ray, "spark": _spark}
