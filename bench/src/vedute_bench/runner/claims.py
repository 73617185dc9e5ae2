"""Claims to runs, so that several processes can share the work of one file of records.

A claim is a small file in the folder <records>.claims that names the process of a run; a thread
renews it during the run. A claim that was not renewed for `LEASE` seconds, or whose process is
dead, is void. Call all functions but `held` under the lock of the records.
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

LEASE, RENEWAL = 120.0, 10.0  # seconds; clocks of machines may differ by LEASE - RENEWAL


def is_free(records: Path, key: str) -> bool:
    """Whether no process has a valid claim to the run with this key."""
    path = _path(records, key)
    try:
        age = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return True
    return abs(age) > LEASE or _is_dead(path)


def deaths(records: Path, key: str) -> int:
    """Number of processes in a row that claimed a run, which is free now, and were killed in it."""
    path = _path(records, key)
    before = _holder(path).get("deaths", 0)
    return before + 1 if path.exists() and isinstance(before, int) else 0


def take(records: Path, key: str) -> str:
    """Claim a free run; return the identifier of the claim for `is_mine`."""
    claim, path = uuid4().hex, _path(records, key)
    holder = {"claim": claim, "pid": os.getpid(), "host": _host(), "time": time.time()}
    holder |= {"deaths": deaths(records, key)}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(holder), encoding="utf-8")
    return claim


def is_mine(records: Path, key: str, claim: str) -> bool:
    """Whether the claim is still valid: after a suspend, another process may have taken over."""
    return _holder(_path(records, key)).get("claim", claim) == claim


@contextmanager
def held(records: Path, key: str, claim: str) -> Iterator[None]:
    """Renew a claim from a thread and release it at the end; the last claim removes the folder."""
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
    """Whether the holder was a process of this machine that has ended."""
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
    """Name of this machine or container, which has its own process ids."""
    with suppress(OSError):
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()
