"""Files of a folder that anybody may have made, read within limits and never followed."""

import contextlib
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from flint import fmpq

from dpcore_verify.balls import RefusedError, need

_TEXT, _ARRAYS, _NAMES = 4_000_000, 1_000_000_000, 4_000_000
_HEX = re.compile(r"-?0x1\.[0-9a-f]{1,13}p[+-][0-9]{1,4}|0x0\.0p\+0")
_SHAPE = re.compile(r"'shape': \(((?:\d{1,15}, ?)*(?:\d{1,15})?)\)")
_ARRAY = re.compile(r"(\d{6,12})(?:x([1-9]\d{0,11}))?\.(.+)\.npy", re.DOTALL)


@contextlib.contextmanager
def opened(folder: Path, name: str, limit: int) -> Iterator[IO[bytes]]:
    """Open a regular file; links, pipes and devices are refused unopened.

    Raises:
        RefusedError: it is missing, no regular file, or larger than the limit.
    """
    try:
        number = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        raise RefusedError(f"{name} is missing, or is a link") from None
    with os.fdopen(number, "rb") as file:
        state = os.fstat(number)
        need(stat.S_ISREG(state.st_mode), f"{name} is no regular file")
        need(state.st_size <= limit, f"{name} is larger than {limit} bytes")
        yield file


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "a key occurs twice in a file")
    return dict(pairs)


def _number(text: str) -> float:
    value = float(text) if len(text) <= 40 else float("nan")
    need(abs(value) < float("inf"), "a number that is not finite, or too long")
    return value


def _integer(text: str) -> int:
    need(len(text) <= 24, "a whole number that is too long")
    return int(text)


def _constant(text: str) -> float:
    raise RefusedError(f"the number {text}")


def document(folder: Path, name: str) -> dict[str, Any]:
    """Return a JSON object whose keys are unique and whose numbers are finite and short.

    Raises:
        RefusedError: it is none, or a file that may not be read.
    """
    try:
        with opened(folder, name, _TEXT) as file:
            content = file.read(_TEXT).decode()
        data = json.loads(
            content,
            object_pairs_hook=_unique,
            parse_float=_number,
            parse_int=_integer,
            parse_constant=_constant,
        )
    except (ValueError, RecursionError):
        raise RefusedError(f"{name} is no JSON file") from None
    need(isinstance(data, dict), f"{name} is no object")
    return dict(data)


def hexadecimal(value: Any) -> fmpq:
    """Return the fraction that a text such as 0x1.8p+1 says, every bit of it."""
    need(isinstance(value, str) and bool(_HEX.fullmatch(value)), "a number is no hexadecimal text")
    return number(float.fromhex(value))


def number(value: Any) -> fmpq:
    """Return the fraction that a number of JSON is."""
    need(type(value) in (int, float), "a number is none")
    return fmpq(*float(value).as_integer_ratio())


def integer(value: Any) -> int:
    """Return an integer of JSON of at most 2^53."""
    need(type(value) is int and abs(value) <= 2**53, "a whole number is none, or too large")
    return int(value)


def count(value: Any) -> int:
    """Return an integer of JSON in [1, 2^53]."""
    need(integer(value) >= 1, "a count is below 1")
    return int(value)


def text(value: Any) -> str:
    """Return a text of bounded length."""
    need(isinstance(value, str) and len(value) <= 1000, "a text is none, or too long")
    return str(value)


def items(value: Any) -> list[Any]:
    """Return a list of bounded length."""
    need(isinstance(value, list) and len(value) <= 10_000, "a list is none, or too long")
    return list(value)


def exactly(value: Any, names: set[str], name: str) -> Mapping[str, Any]:
    """Return an object that has these keys and no others."""
    need(isinstance(value, dict) and value.keys() == names, f"{name} has other fields")
    return dict(value)


Arrays = dict[tuple[str, str], list[tuple[int, tuple[int, ...]]]]


def arrays(folder: Path, releases: set[str]) -> Arrays:
    """Return (asks, shape) of every array of answers.npz, by release and query, from headers only.

    An array of several queries has a name RELEASE.STARTxCOUNT.QUERY and one row a query.
    """
    result: Arrays = {}
    try:
        with opened(folder, "answers.npz", _ARRAYS) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 66_000))
            end = file.read()
            start = end.rfind(b"PK\x05\x06")
            need(start >= 0 and b"PK\x06\x07" not in end, "answers.npz is no plain archive")
            size = int.from_bytes(end[start + 12 : start + 16], "little")
            need(size <= _NAMES, "answers.npz has too many names")
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
                need(len(set(names)) == len(names), "answers.npz: a name occurs twice")
                # the order of answers next to them is no answer
                for name in set(names) - {f"{release}.order.npy" for release in releases}:
                    key, queries = _queries_of(name, releases)
                    with archive.open(name) as array:
                        shape = _shape(array.read(2200))
                    need(
                        queries is None or shape[:1] == (queries,),
                        "answers.npz: rows and asks differ",
                    )
                    entry = (1, shape) if queries is None else (queries, shape[1:])
                    result.setdefault(key, []).append(entry)
    except (
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ):
        raise RefusedError("answers.npz is damaged") from None
    return result


def _queries_of(name: str, releases: set[str]) -> tuple[tuple[str, str], int | None]:
    for release in releases:
        match = _ARRAY.fullmatch(name.removeprefix(f"{release}."))
        if name.startswith(f"{release}.") and match is not None:
            return (release, match[3]), int(match[2]) if match[2] else None
    raise RefusedError("answers.npz: an array that belongs to no release")


def _shape(head: bytes) -> tuple[int, ...]:
    match = _SHAPE.search(head[:2200].decode("latin1"))
    need(head[:6] == b"\x93NUMPY" and match is not None, "answers.npz: an array without a header")
    sides = tuple(int(n) for n in match[1].split(",") if n.strip()) if match is not None else ()
    # a complex number is two coordinates
    return (*sides, 2) if b"'<c" in head[:100] else sides
