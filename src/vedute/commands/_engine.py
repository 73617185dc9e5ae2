"""The options --engine and --scheduler: where many fits run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Annotated, Any

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
    from joblib import parallel_config

    with ExitStack() as started:
        n_jobs = STARTS[engine](scheduler, jobs, started)
        with parallel_config(engine, n_jobs=n_jobs):
            yield


def _cores() -> int:
    from vedute.scale import backends

    return backends.cores()


def _loky(scheduler: str | None, jobs: int | None, started: ExitStack) -> int:
    if scheduler is not None:
        raise ValueError("loky has no scheduler, it runs on this machine; leave --scheduler out")
    return jobs or _cores()


def _dask(scheduler: str | None, jobs: int | None, started: ExitStack) -> int:
    from distributed import Client, LocalCluster

    where: Any = scheduler
    if where is None:
        n = jobs or _cores()
        local = LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=None)
        where = started.enter_context(local)
    started.enter_context(Client(where))
    return -1


def _ray(scheduler: str | None, jobs: int | None, started: ExitStack) -> int:
    import ray
    from ray.util.joblib import register_ray

    ray.init(address=scheduler, num_cpus=jobs)
    started.callback(ray.shutdown)
    register_ray()
    return -1


def _spark(scheduler: str | None, jobs: int | None, started: ExitStack) -> int:
    from joblibspark import register_spark
    from pyspark.sql import SparkSession

    master = scheduler or f"local[{jobs or _cores()}]"
    session = SparkSession.builder.appName("vedute").master(master).getOrCreate()
    started.callback(session.stop)
    register_spark()
    return int(session.sparkContext.defaultParallelism)


# Each starts an engine, which `started` ends, and returns the number of parallel tasks; -1: all.
STARTS: dict[str, Callable[[str | None, int | None, ExitStack], int]] = {
    "loky": _loky,
    "dask": _dask,
    "ray": _ray,
    "spark": _spark,
}
