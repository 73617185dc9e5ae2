"""The dialect of a text file, detected from its first lines."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple, cast

from vedute.data import limits
from vedute.data.frames import is_number, listed

SEPARATORS = ("\t", ";", ",", "|")
LOOKED_AT = 20  # lines


class Dialect(NamedTuple):
    """columns: that of the ids first; unnamed: 1 if the header leaves it out, as R does."""

    separator: str
    encoding: str
    end: str
    columns: list[str]
    unnamed: int


def opened(path: Path, mode: str, encoding: str) -> IO[str]:
    """A text file, compressed or not; ends of lines as they are."""
    if path.suffix.lower() == ".gz" and mode == "r":
        return TextIOWrapper(limits.unpacked(path), encoding=encoding, newline="")
    if path.suffix.lower() == ".gz":
        return cast(IO[str], gzip.open(path, f"{mode}t", encoding=encoding, newline=""))
    return path.open(mode, encoding=encoding, newline="")


def sniff(path: Path) -> Dialect:
    """Separator, encoding, ends of lines and header."""
    limits.file_size(path)
    encoding = _encoding(path)
    try:
        with opened(path, "r", encoding) as file:
            lines = [line for line in islice(file, LOOKED_AT) if line.strip()]
        if not lines:
            raise ValueError(f"{path} is empty; leave it out")
        separator, rows = _cut(lines)
    except UnicodeError as e:
        raise ValueError(f"{path} is not UTF-8 text ({e}); save it as UTF-8") from None
    except csv.Error as e:
        raise ValueError(f"{path} is not a text table ({e}); export it as CSV") from None
    header = [name.strip() for name in rows[0]]
    unnamed = 0
    if len(rows) > 1 and all(len(r) == len(header) + 1 for r in rows[1:]):
        unnamed = int(any(r[-1].strip() for r in rows[1:]))  # else commas at the ends of lines
        header = ["", *header] if unnamed else [*header, ""]
    if len(header) < 2:
        raise ValueError(
            f"{path} has one column, {header[0]!r}; expected sample ids and at least one more, "
            "separated by comma, semicolon or tab"
        )
    _check(header, path)
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    return Dialect(separator, encoding, end, header, unnamed)


def _encoding(path: Path) -> str:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            start = file.read(4096)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{path} is not a gzip file; write it again") from None
    if start.startswith(b"PK\x03\x04"):
        raise ValueError(f"{path} is a zip or Excel file, not text; export it as CSV")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in start:
        raise ValueError(f"{path} holds zero bytes, so it is not text; export it as CSV")
    return "utf-8-sig" if start.startswith(b"\xef\xbb\xbf") else "utf-8"


def _cut(lines: list[str]) -> tuple[str, list[list[str]]]:
    """The separator that cuts lines into as many fields as the header, and more than others."""
    best, score = (",", [[line.strip()] for line in lines]), (False, 1)
    problem: csv.Error | None = None
    for separator in (*SEPARATORS, " "):
        if separator == " " and score[1] > 1:  # names may have blanks
            break
        try:
            rows = [r for r in csv.reader(lines, delimiter=separator, skipinitialspace=True) if r]
        except csv.Error as e:  # a long line is one cell to the wrong separator
            problem = e
            continue
        width = len(rows[0])
        fits = sum(len(r) in (width, width + 1) for r in rows[1:]) >= len(rows[1:]) / 2
        if max(map(len, rows)) > 1 and (fits, width) > score:
            best, score = (separator, rows), (fits, width)
    if problem is not None and score[1] == 1:
        raise problem
    return best


def _check(header: list[str], path: Path) -> None:
    named = [name for name in header[1:] if name]
    twice = [name for name, k in Counter(filter(None, header)).items() if k > 1]
    if twice:
        raise ValueError(f"{path} has duplicated columns {listed(twice)}; rename them")
    if named and all(map(is_number, named)) and not all(name.isdigit() for name in named):
        raise ValueError(
            f"{path} has no header: its first line holds values like {named[0]!r}; begin with "
            "a line of column names"
        )
