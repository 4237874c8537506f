"""Category files: `categories_from: FILE` becomes `categories: [...]` before a spec is read on.

So a lock holds the list itself, and replaying a run needs no file beside it.
"""

from pathlib import Path

import attrs

from dpcore.errors import SpecError, below, map_below, need, shown
from dpcore.strict_yaml.located import LARGEST_FILE, MOST_LISTED, MOST_NODES, Node, open_regular

_KEY = "categories_from"


def with_lists(node: Node, folder: Path | None) -> Node:
    """The spec at `node` with the lists of its category files, which stand relative to `folder`.

    A file holds one category a line, in UTF-8; empty lines are left out.

    Raises:
        SpecError: a file is missing, too large or no text, or they list too many in all.
    """
    return _Reader(folder).with_columns_read(node, ("data", "domain"))


@attrs.define
class _Reader:
    """Where the files stand, and how many categories may still come."""

    folder: Path | None
    remaining: int = MOST_LISTED - MOST_NODES

    def with_columns_read(self, node: Node, path: tuple[str, ...]) -> Node:
        """`node` with the columns and the target below `path` read; what is no mapping stays."""
        if not isinstance(node.value, dict):
            return node
        value = dict(node.value)
        for key in path[:1]:
            if key in value:
                with below(key):
                    value[key] = self.with_columns_read(value[key], path[1:])
        # An empty path is the domain itself: the target first, then columns and groups.
        if not path and "target" in value:
            with below("target"):
                value["target"] = self.with_categories(value["target"])
        for part in () if path else ("columns", "groups"):
            if (columns := value.get(part)) is None or not isinstance(columns.value, dict):
                continue
            columns_read = map_below(self.with_categories, columns.value.items(), part)
            value[part] = attrs.evolve(columns, value=columns_read)
        return attrs.evolve(node, value=value)

    def with_categories(self, column: Node) -> Node:
        """`column` with its list, if it names a file."""
        if not isinstance(column.value, dict) or _KEY not in column.value:
            return column
        node = column.value[_KEY]
        name = node.value
        if not isinstance(name, str) or "categories" in column.value:
            raise SpecError("needs the path of a file, and no 'categories' beside it", _KEY)
        texts = _lines(Path(name) if self.folder is None else self.folder / name, name)
        # The limit is on all files together: a lock holds their lists, and must itself be readable.
        self.remaining -= len(texts)
        if self.remaining < 0:
            raise SpecError(f"more than {MOST_LISTED - MOST_NODES} categories in all", _KEY)
        entries: list[Node] = [attrs.evolve(node, value=text) for text in texts]
        fields = {key: value for key, value in column.value.items() if key != _KEY}
        keys = {**column.keys, "categories": (node.line, node.column)}
        return attrs.evolve(
            column, value={**fields, "categories": attrs.evolve(node, value=entries)}, keys=keys
        )


def _lines(path: Path, name: str) -> list[str]:
    """The lines of a file that are not empty.

    Raises:
        SpecError: it is no regular file of UTF-8 text, or too large.
    """
    try:
        with open_regular(path) as file:
            # One byte more than allowed tells a file that is too large without reading all of it.
            raw = file.read(LARGEST_FILE + 1)
        texts = [line.strip(" \t") for line in raw.decode("utf-8-sig").splitlines()]
    except OSError as error:
        raise SpecError(f"{shown(name)}: {error.strerror}", _KEY) from None
    except ValueError:
        raise SpecError(f"{shown(name)}: not a file of UTF-8 text", _KEY) from None
    need(
        len(raw) <= LARGEST_FILE, SpecError, f"{shown(name)}: more than {LARGEST_FILE} bytes", _KEY
    )
    return [text for text in texts if text]
