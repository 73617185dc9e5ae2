"""Restrictions of a case: the files it writes, the processes it starts, the errors it raises."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import vedute

SRC = str(Path(vedute.__file__).parent)
WRITING = os.O_WRONLY | os.O_RDWR
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate")
EXECUTES = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen")
SECONDS, BYTES = 60, 4 * 2**30  # limits of a process that reads a damaged file

_place: str | None = None  # folder in which a watched case may write files
_violations: list[str] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _place is None:
        return
    if event in EXECUTES:
        _violations.append(f"{event} {args[:2]}")
    elif event == "open" and isinstance(args[0], (str, bytes, os.PathLike)):
        if args[2] & WRITING:
            _check_path(event, args[0])
    elif event in CHANGES:
        paths = [a for a in args if isinstance(a, (str, bytes, os.PathLike))]
        if not any(isinstance(a, int) and a > 2 for a in args):  # relative to an open folder
            for path in paths[: 2 if event == "os.rename" else 1]:
                _check_path(event, path)


def _check_path(event: str, path: Any) -> None:
    real = os.path.realpath(Path(os.fsdecode(path)).parent)
    if not f"{real}/".startswith(f"{_place}/") and os.fsdecode(path) != os.devnull:
        _violations.append(f"{event} {os.fsdecode(path)}")


sys.addaudithook(_hook)


@contextmanager
def watched(place: Path) -> Iterator[None]:
    """Assert that files are written only below `place`, and that nothing is executed."""
    global _place
    _violations.clear()
    _place = os.path.realpath(place)
    try:
        yield
    finally:
        _place = None
    assert not _violations, f"outside: {'; '.join(_violations[:3])}"


def refused(error: Exception, kinds: tuple[type[Exception], ...] = (ValueError, TypeError)) -> str:
    """Check that a refusal is one sentence of vedute, and return its outcome."""
    text = str(error) if isinstance(error, OSError) else str(error.args[0]) if error.args else ""
    at = traceback.extract_tb(error.__traceback__)
    places = " < ".join(_place_of(f) for f in at[:-4:-1])
    message = f"{type(error).__name__}: {text[:200]!r} at {places}"
    assert isinstance(error, kinds), message
    assert text.strip(), message
    assert "Traceback" not in text, message
    listed = type(error).__name__ == "ProblemsError"  # one line per problem of all files
    n_lines = len(text.replace("a\nb", "a b").splitlines())  # some names contain a newline
    assert listed or n_lines == 1, message
    of_system = isinstance(error, OSError) and error.errno is not None
    through_pandas = "VEDUTE_MAX_BYTES" in text  # pandas reads our stream
    ours = at[-1].filename.startswith(SRC) or of_system or through_pandas
    assert ours, f"not raised by vedute: {message}"
    return "refused"


def _place_of(frame: traceback.FrameSummary) -> str:
    return f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno}"


def in_subprocess(
    work: Callable[[], Any], seconds: float = SECONDS, memory: int | None = BYTES
) -> Any:
    """Do the work in a forked process with limited time and memory; return or raise its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _answer(work, writing, seconds, memory)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, f"the process ended with {code}"
    result, error = pickle.loads(content)
    if error is not None:
        raise AssertionError(error)
    return result


def _answer(work: Callable[[], Any], writing: int, seconds: float, memory: int | None) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if memory is not None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory,) * 2)
    try:
        answer = work(), None
    except BaseException as error:
        text = " ".join(traceback.format_exception(error)[-3:])
        answer = None, str(error) if isinstance(error, AssertionError) else text
    with os.fdopen(writing, "wb") as file:
        file.write(pickle.dumps(answer))
    os._exit(0)
