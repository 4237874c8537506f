"""Category files: `categories_from: FILE` becomes `categories: [...]` before a spec is read on.

So a lock holds the list itself, and replaying a run needs no file beside it.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from dpcore.errors import SpecError, below, shown
from dpcore.strict_yaml.located import LARGEST_FILE, Node

_KEY = "categories_from"


def with_lists(node: Node, folder: Path | None) -> Node:
    """The spec at `node` with the lists of its category files, which stand relative to `folder`.

    A file holds one category a line, in UTF-8; empty lines are left out.

    Raises:
        SpecError: a file is missing, too large or no text.
    """
    return _changed(node, ("data", "domain"), folder)


def _changed(node: Node, path: tuple[str, ...], folder: Path | None) -> Node:
    """`node` with the columns and the target below `path` read; what is no mapping stays."""
    if not isinstance(node.value, dict):
        return node
    value = dict(node.value)
    for key in path[:1]:
        if key in value:
            with below(key):
                value[key] = _changed(value[key], path[1:], folder)
    if not path and "target" in value:
        with below("target"):
            value["target"] = _listed(value["target"], folder)
    columns = None if path else value.get("columns")
    if columns is not None and isinstance(columns.value, dict):
        listed = {}
        for name, column in columns.value.items():
            with below("columns", name):
                listed[name] = _listed(column, folder)
        value["columns"] = attrs.evolve(columns, value=listed)
    return attrs.evolve(node, value=value)


def _listed(column: Node, folder: Path | None) -> Node:
    if not isinstance(column.value, dict) or _KEY not in column.value:
        return column
    node = column.value[_KEY]
    name = node.value
    if not isinstance(name, str) or "categories" in column.value:
        raise SpecError("needs the path of a file, and no 'categories' beside it", _KEY)
    try:
        with (Path(name) if folder is None else folder / name).open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        texts = [line.strip(" \t") for line in raw.decode("utf-8-sig").splitlines()]
    except OSError as error:
        raise SpecError(f"{shown(name)}: {error.strerror}", _KEY) from None
    except ValueError:
        raise SpecError(f"{shown(name)}: not a file of UTF-8 text", _KEY) from None
    if len(raw) > LARGEST_FILE:
        raise SpecError(f"{shown(name)}: more than {LARGEST_FILE} bytes", _KEY)
    entries: list[Node] = [attrs.evolve(node, value=text) for text in texts if text]
    rest = {key: value for key, value in column.value.items() if key != _KEY}
    keys = {**column.keys, "categories": (node.line, node.column)}
    return attrs.evolve(
        column, value={**rest, "categories": attrs.evolve(node, value=entries)}, keys=keys
    )
