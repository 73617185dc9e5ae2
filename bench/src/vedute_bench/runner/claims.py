"""Who does which run, where several processes share the work of one file of records.

A claim is a small file in the folder <records>.claims: the process that does the run, renewed by a
thread while it does. One that was not renewed for `LEASE` seconds, or whose process is dead, is
free. All but `held` is to be called under the lock of the records.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

from vedute_bench.runner.lock import locked

LEASE, RENEWAL = 120.0, 10.0  # seconds; clocks of several machines may differ by the rest


def is_free(records: Path, key: str) -> bool:
    """Whether nobody does the run with this key."""
    path = _path(records, key)
    try:
        age = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return True
    return abs(age) > LEASE or _is_dead(path)


def deaths(records: Path, key: str) -> int:
    """How many processes took a run that is free, one after the other, and were killed inside."""
    path = _path(records, key)
    before = _holder(path).get("deaths", 0)
    return before + 1 if path.exists() and isinstance(before, int) else 0


def take(records: Path, key: str) -> str:
    """A new claim to a run that is free; returns what `is_mine` knows it by."""
    mine, path = uuid4().hex, _path(records, key)
    holder = {"claim": mine, "pid": os.getpid(), "host": _host(), "time": time.time()}
    holder |= {"deaths": deaths(records, key)}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(holder), encoding="utf-8")
    return mine


def is_mine(records: Path, key: str, claim: str) -> bool:
    """Not if the lease ran out, as on a machine that slept, and another process took over."""
    return _holder(_path(records, key)).get("claim", claim) == claim


@contextmanager
def held(records: Path, key: str, claim: str) -> Iterator[None]:
    """Inside, a thread renews a claim, which ends with it; the folder goes with its last claim."""
    path, ended = _path(records, key), Event()

    def renew() -> None:
        while not ended.wait(RENEWAL):
            with suppress(OSError):
                os.utime(path)

    Thread(target=renew, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        with locked(records):
            if is_mine(records, key, claim):
                path.unlink(missing_ok=True)
            with suppress(OSError):
                path.parent.rmdir()


def _path(records: Path, key: str) -> Path:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return records.with_name(f"{records.name}.claims") / f"{digest[:32]}.json"


def _holder(path: Path) -> dict[str, object]:
    try:
        holder = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _is_dead(path: Path) -> bool:
    """Whether the holder was a process of this machine and is none any more."""
    holder = _holder(path)
    pid = holder.get("pid")
    if os.name == "nt" or holder.get("host") != _host() or not isinstance(pid, int):
        return False  # on Windows, os.kill would end it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _host() -> str:
    """This machine; in a container, which has processes of its own, that one."""
    with suppress(OSError):
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()
