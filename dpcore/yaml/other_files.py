"""Paths that lead to no text: what is there, and what to give instead.

A spec and a table of records are refused in the same words. Nothing here shows what a file holds.
"""

import itertools
import re
from contextlib import suppress
from pathlib import Path

from dpcore.errors import near

_URL = re.compile(r"[a-z][a-z0-9+]+:/")
_MOST = 1000  # names of a folder that a hint looks at
_RUN = "a run folder: `dpcore replay` and `dpcore report` read it"
_FOLDER = "not a file but a folder: name a file in it"
_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_STARTS = {
    b"PK\x03\x04": "an Excel workbook or a zip archive: save the summary as CSV, or unpack it",
    b"\x1f\x8b": "compressed by gzip: unpack it",
    b"PAR1": "Parquet: let its name end in .parquet",
    b"%PDF": "a PDF: export its table as CSV",
}


def why_unreadable(path: Path, error: OSError) -> str:
    """Why nothing can be read at a path, with the nearest name of its folder if one is near."""
    if _URL.match(path.as_posix()):
        return "a URL is no file: download it, and give the file's path"
    if path.is_dir():
        return _RUN if (path / "public").is_dir() else _FOLDER
    if not isinstance(error, FileNotFoundError):
        return f"cannot be read ({error.strerror})"
    names: list[str] = []
    with suppress(OSError):
        files = itertools.islice(path.parent.iterdir(), _MOST)
        names = [file.name for file in files if file.suffix == path.suffix]
    return f"no such file{near(path.name, names)}"


def why_no_keys(path: Path, way: str) -> str:
    """Return what a file without keys is, and what writes a spec for a file of records."""
    if path.suffix.lower() in _TABLES and "a spec" in way:
        return f"this is a data file, not a spec; `dpcore init {path}` writes a spec for it"
    return f"this file has no keys with values, such as `dpcore: 1`{way}"


def why_no_text(start: bytes) -> str:
    """Return what a file is whose bytes are no UTF-8, from how it begins."""
    kinds = [f", but {kind}" for mark, kind in _STARTS.items() if start.startswith(mark)]
    return "not UTF-8 text" + "".join(kinds)
