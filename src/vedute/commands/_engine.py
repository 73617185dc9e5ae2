"""The options --engine and --scheduler: where many fits run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Annotated, Any

Engine = Annotated[
    str | None, "loky|dask|ray|spark: What runs the fits, by joblib.", "this process"
]
Scheduler = Annotated[str | None, "ADDRESS: Address of a running engine.", "started here"]
NEEDED = {"loky": "joblib", "dask": "distributed", "ray": "ray", "spark": "joblibspark"}


@contextmanager
def running(engine: str | None, scheduler: str | None, jobs: int | None = None) -> Iterator[None]:
    """A context in which joblib runs on an engine; jobs: parallel tasks of one started here."""
    if engine is None:
        if scheduler is not None:
            raise ValueError("--scheduler is the address of an engine; name it with --engine")
        yield
        return
    if engine not in NEEDED:
        raise ValueError(f"no engine {engine!r}; choose from {', '.join(NEEDED)}")
    if scheduler is not None and jobs is not None:
        raise ValueError(f"--jobs is for engines started here; the one at {scheduler} has its own")
    if find_spec(NEEDED[engine]) is None:
        raise ImportError(f"--engine {engine} needs: pip install 'vedute[{engine}]'")
    from joblib import parallel_config

    with ExitStack() as ends:
        n_jobs = _started(engine, scheduler, jobs, ends)
        with parallel_config(engine, n_jobs=n_jobs):
            yield


def _started(engine: str, scheduler: str | None, jobs: int | None, ends: ExitStack) -> int:
    """Start an engine, which `ends` stops; the number of parallel tasks, -1: all."""
    from vedute.scale import backends

    n_jobs = jobs or backends.cores()
    if engine == "loky" and scheduler is not None:
        raise ValueError("loky has no scheduler, it runs on this machine; leave --scheduler out")
    if engine == "loky":
        return n_jobs
    if engine == "dask":
        from distributed import Client, LocalCluster

        own: Any = {"n_workers": n_jobs, "threads_per_worker": 1, "dashboard_address": None}
        ends.enter_context(Client(scheduler or ends.enter_context(LocalCluster(**own))))
        return -1
    if engine == "ray":
        import ray
        from ray.util.joblib import register_ray

        ray.init(address=scheduler, num_cpus=jobs)
        ends.callback(ray.shutdown)
        register_ray()
        return -1
    from joblibspark import register_spark
    from pyspark.sql import SparkSession

    master = scheduler or f"local[{n_jobs}]"
    session = SparkSession.builder.appName("vedute").master(master).getOrCreate()
    ends.callback(session.stop)
    register_spark()
    return int(session.sparkContext.defaultParallelism)
