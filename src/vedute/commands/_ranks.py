"""Commands started by torchrun: one process per rank, of which the first prints and writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from vedute.commands._command import say

STARTED = ("RANK", "WORLD_SIZE", "LOCAL_RANK")  # set by torchrun in each process


def started() -> bool:
    """Whether torchrun started this process."""
    return all(name in os.environ for name in STARTED)


def first() -> bool:
    return not started() or os.environ["RANK"] == "0"


def restarted() -> bool:
    """Whether torchrun restarted the ranks after one was lost."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


def check(command: str) -> None:
    """Reject commands that cannot run on several ranks."""
    if command != "fit" and started() and os.environ["WORLD_SIZE"] != "1":
        raise ValueError(f"torchrun runs vedute fit, not vedute {command}; start that without it")


def quiet() -> None:
    """Silence all ranks but the first, except for `say_once`."""
    if not first():
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115


def say_once(sentence: str, last: bool = False) -> None:
    """Print a sentence on the first rank to call this; last: only if no rank has printed yet."""
    mine, distributed = first(), sys.modules.get("torch.distributed")
    if started() and distributed is not None and distributed.is_initialized():
        with suppress(RuntimeError):  # the store is gone with its process
            store = distributed.distributed_c10d._get_default_store()
            silent = store.add("vedute says", 1) == 1
            mine = silent if last else store.add(f"vedute says {sentence}", 1) == 1
    if mine:
        say(sentence, file=sys.stderr if first() else sys.__stderr__)


@contextmanager
def joined() -> Iterator[None]:
    """A context of ranks in a process group: over NCCL if all have their own GPU, else gloo."""
    if not started():
        yield
        return
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    local = int(os.environ["LOCAL_RANK"])
    one_gpu_each = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    gpus = torch.cuda.is_available() and one_gpu_each and distributed.is_nccl_available()
    if gpus:
        torch.cuda.set_device(local)
    backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    store, rank, size = next(rendezvous("env://"))
    # On one machine torchrun keeps entries of the store from before a restart; docs/scale.md
    # describes how to avoid that on several.
    if os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
        start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = distributed.PrefixStore(f"start-{start}", store)  # type: ignore[attr-defined]
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size)
    yield  # after an error, the process ends without waiting for the others
    distributed.destroy_process_group()
