"""YAML text to plain data that remembers where each value was.

Read by the core schema of YAML 1.2 (`no` is text, `1e-5` is a number). What a spec never needs and
readers disagree on is refused: anchors, aliases, tags, duplicate keys, directives, several
documents, NaN and infinities. PyYAML scans; resolving scalars and refusing is done here.

Size, depth and number of values are bounded, so that any text is read in a few seconds.

An error carries a path of keys: anyone who read the file adds file, line and column, once.
"""

import errno
import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import yaml

from dpcore.errors import DpcoreError, ParameterError, SpecError, need, shown

LARGEST_FILE = 1 << 20  # bytes
DEEPEST = 32  # nested collections
MOST_NODES = 50_000  # keys and values of a text
MOST_LISTED = 250_000  # the same, with the lists of its category files

_NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
_TRUE = re.compile(r"(?:true|True|TRUE)\Z")
_FALSE = re.compile(r"(?:false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")

Scalar = str | int | float | bool | None


@attrs.frozen(eq=False)
class Node:
    """A value with the file, line and column (from 1) at which it starts.

    Args:
        value: A scalar, a list of nodes, or a dict of nodes by key.
        keys: For a dict, where each key is.
    """

    value: "Scalar | list[Node] | dict[str, Node]"
    file: str
    line: int
    column: int
    keys: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    @property
    def where(self) -> str:
        """The place of the value as FILE:LINE:COLUMN, lines and columns from 1."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def mapping(self) -> "dict[str, Node]":
        """The nodes of a mapping by key; none of a value that is no mapping."""
        return self.value if isinstance(self.value, dict) else {}

    def where_key(self, key: str) -> str:
        """FILE:LINE:COLUMN of a key of this mapping, or of an entry of this list by its number.

        Of the mapping or list itself if it lacks the key.
        """
        if isinstance(self.value, list) and key.isdecimal() and int(key) < len(self.value):
            return self.value[int(key)].where
        line, column = self.keys.get(key, (self.line, self.column))
        return f"{self.file}:{line}:{column}"

    def plain(self) -> Any:
        """Return the value as plain Python data, without positions."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value


def open_regular(path: Path, flags: int = 0) -> BinaryIO:
    """Open a regular file to read it; no pipe is waited for.

    Args:
        flags: Further ones of `os.open`.

    Raises:
        OSError: it cannot be read, or is something else.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, "rb")


def require_regular(path: Path) -> None:
    """Raise `OSError` where something is at a path that is no regular file."""
    if os.path.lexists(path):
        open_regular(path).close()


def read(path: Path, way: str = "") -> Node:
    """Return the single document in a file: a mapping or a list.

    Args:
        way: What to do where there is none, as the end of a sentence.

    Raises:
        SpecError: the file is missing, unreadable, too large, or not the YAML described above.
    """
    name = path.name
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        from dpcore.yaml.other_files import why_unreadable  # where something is wrong

        raise SpecError(why_unreadable(path, error) + way, place=str(path)) from None
    need(len(raw) <= LARGEST_FILE, SpecError, f"larger than {LARGEST_FILE} bytes", place=name)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        from dpcore.yaml.other_files import why_no_text

        line = raw.count(b"\n", 0, error.start) + 1
        raise SpecError(why_no_text(raw) + way, place=f"{name}:{line}:1") from None
    need(text.strip(), SpecError, f"the file is empty{way}", place=f"{name}:1:1")
    node = parse(text, name)
    # Text by itself may be a file of records, of which no message may show anything.
    if not isinstance(node.value, dict | list):
        from dpcore.yaml.other_files import why_no_keys

        raise SpecError(why_no_keys(path, way), place=node.where)
    return node


def parse(text: str, name: str) -> Node:
    """Return the single document in `text`; `name` represents the file in messages.

    Raises:
        SpecError: it is too large, or not the YAML described above.
    """
    # Bound the work before the scanner sees the text: its time grows with the size.
    need(len(text) <= LARGEST_FILE, SpecError, f"larger than {LARGEST_FILE} bytes", place=name)
    events = _limit_events(_events(text, name), name)
    node = None
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            where, is_plain = _where(event, name), not event.version and not event.tags
            need(is_plain, SpecError, "YAML directives are not allowed", place=where)
            need(
                node is None,
                SpecError,
                "a second document begins here; keep one, and delete this line",
                place=where,
            )
            node = _build(next(events), events, name, 0)
    if node is None or node.value is None:
        raise SpecError("the file is empty", place=f"{name}:1:1")
    return node


def of_plain(data: Any, name: str) -> Node:
    """Plain data that were read elsewhere, such as a lock's; every place is the file's first.

    Raises:
        SpecError: they are too many, too deep, or no spec's.
    """
    remaining = MOST_LISTED

    def make_node(value: Any, depth: int) -> Node:
        nonlocal remaining
        # The same bounds as for text: a lock that somebody edited must not take longer to read.
        remaining -= 1
        need(remaining >= 0, SpecError, f"more than {MOST_LISTED} keys and values", place=name)
        need(depth <= DEEPEST, SpecError, f"nested deeper than {DEEPEST} levels", place=name)
        if isinstance(value, dict):
            inner = {str(key): make_node(entry, depth + 1) for key, entry in value.items()}
            return Node(inner, name, 1, 1, dict.fromkeys(inner, (1, 1)))
        if isinstance(value, list | tuple):
            return Node([make_node(entry, depth + 1) for entry in value], name, 1, 1)
        if isinstance(value, int) and not isinstance(value, bool):
            _require_64_bits(value, f"{name}:1:1")
        return Node(
            _require_characters(value, f"{name}:1:1") if isinstance(value, str) else value,
            name,
            1,
            1,
        )

    return make_node(data, 0)


def _limit_events(events: Iterator[yaml.Event], name: str) -> Iterator[yaml.Event]:
    """Pass events on.

    Raises:
        SpecError: there are more keys and values than a text may have.
    """
    count = 0
    for event in events:
        if isinstance(event, yaml.NodeEvent):
            count += 1
            if count > MOST_NODES:
                raise SpecError(
                    f"more than {MOST_NODES} keys and values; a long list of categories can be "
                    "in a file of its own (categories_from)",
                    place=_where(event, name),
                )
        yield event


def _events(text: str, name: str) -> Iterator[yaml.Event]:
    """PyYAML's events, its errors turned into ours."""
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else f"{name}:1:1"
        raise SpecError(f"not YAML: {_in_words(str(error.problem))}", place=where) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        where = f"{name}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        raise SpecError("not YAML: a character that YAML does not allow", place=where) from None


_PROBLEMS = {
    "mapping values": "a second ': ' on this line; put text that holds one into quotes",
    "expected ':'": "a key without ': '",
    "'\\t'": "a tab at the beginning of a line; indent with spaces",
    "cannot start any token": "text that begins like this needs quotes",
    "']'": "the list is not closed; ',' or ']' was needed",
    "'}'": "the mapping is not closed; ',' or '}' was needed",
    "end of stream": "the quotes are not closed",
    "<block end>": "this line is not indented like its neighbours",
    "escape": "an escape that double quotes do not know; use single quotes",
}


def _in_words(problem: str) -> str:
    """PyYAML's problem in words that say what to change in the file."""
    phrases = (words for part, words in _PROBLEMS.items() if part in problem)
    return next(phrases, "the text cannot be read from here on")


def _where(event: yaml.Event, name: str) -> str:
    line, column = _position(event)
    return f"{name}:{line}:{column}"


def _position(event: yaml.Event) -> tuple[int, int]:
    """Line and column, from 1."""
    mark = event.start_mark
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


def _build(event: yaml.Event, events: Iterator[yaml.Event], name: str, depth: int) -> Node:
    where = _where(event, name)
    need(
        not isinstance(event, yaml.AliasEvent) and getattr(event, "anchor", None) is None,
        SpecError,
        "anchors and aliases are not allowed",
        place=where,
    )
    if (tag := getattr(event, "tag", None)) is not None:
        raise SpecError(f"tags are not allowed, got {shown(tag)}", place=where)
    need(depth <= DEEPEST, SpecError, f"nested deeper than {DEEPEST} levels", place=where)
    keys: dict[str, tuple[int, int]] = {}
    value: Scalar | list[Node] | dict[str, Node]
    if isinstance(event, yaml.ScalarEvent):
        plain = event.implicit[0]
        value = _resolve(event.value, where) if plain else _require_characters(event.value, where)
    elif isinstance(event, yaml.SequenceStartEvent):
        value = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            value.append(_build(item, events, name, depth + 1))
    else:
        value = {}
        while not isinstance(item := next(events), yaml.MappingEndEvent):
            key = _key(item, name)
            # YAML readers disagree on which of two equal keys wins, so a reviewer could read
            # another budget than the program.
            if key in value:
                raise SpecError(f"the key {shown(key)} is given twice", place=_where(item, name))
            keys[key] = _position(item)
            value[key] = _build(next(events), events, name, depth + 1)
    return Node(value, name, *_position(event), keys)


def _key(event: yaml.Event, name: str) -> str:
    """Keys are text, whatever they look like."""
    where = _where(event, name)
    need(
        not isinstance(event, yaml.AliasEvent) and getattr(event, "anchor", None) is None,
        SpecError,
        "anchors and aliases are not allowed",
        place=where,
    )
    if not isinstance(event, yaml.ScalarEvent):
        raise SpecError("a key must be a word, not a list or mapping", place=where)
    if event.tag is not None:
        raise SpecError(f"tags are not allowed, got {shown(event.tag)}", place=where)
    need(event.value, SpecError, "a key must not be empty", place=where)
    return _require_characters(str(event.value), where)


def _require_characters(text: str, where: str) -> str:
    """Text that can be written again: an escape may hold half a character."""
    need(
        all(not "\ud800" <= character <= "\udfff" for character in text),
        SpecError,
        "half a character (a lone surrogate) is not text",
        place=where,
    )
    return text


def _require_64_bits(number: int, where: str) -> int:
    need(
        abs(number) < 1 << 63, SpecError, "a whole number must have fewer than 64 bits", place=where
    )
    return number


def _resolve(text: str, where: str) -> Scalar:
    """Return a plain scalar by the YAML 1.2 core schema."""
    if _NULL.match(text):
        return None
    if _TRUE.match(text) or _FALSE.match(text):
        return bool(_TRUE.match(text))
    if _INT.match(text) or _BASED.match(text):
        # Long digits never reach `int`, whose time grows with the square of their number.
        number = int(text, 10 if _INT.match(text) else 0) if len(text) < 40 else 1 << 64
        return _require_64_bits(number, where)
    is_number = _FLOAT.match(text) is not None
    if is_number and math.isfinite(value := float(text)):
        return value
    if is_number or _NOT_FINITE.match(text):
        raise SpecError(f"{shown(text)} is not a finite number", place=where)
    return text


@contextmanager
def locate_errors(node: Node) -> Iterator[None]:
    """What is raised inside about a key of `node` says where the key is in its file."""
    try:
        yield
    except DpcoreError as error:
        place(error, node)
        raise


def place(error: DpcoreError, node: Node) -> None:
    """Give an error without a place that of its path: of the nearest key that the file has.

    An error about no key is about the whole file if it says that the file is wrong; one about a
    parameter that the file does not give is not about the file.
    """
    about = bool(error.steps or error.key) or isinstance(error, SpecError)
    foreign = isinstance(error, ParameterError) and reached(node, [str(error.field)]) is node
    if error.place is not None or not about or (foreign and not error.steps):
        return
    # An unknown key is itself at fault, so point at the key and not at the mapping.
    if error.key is not None:
        error.place = reached(node, error.steps).where_key(error.key)
    else:
        steps = error.steps if error.field is None else (*error.steps, error.field)
        error.place = reached(node, steps).where


def reached(node: Node, steps: Sequence[str]) -> Node:
    """Return the node at a path of keys, as far as it leads."""
    for step in steps:
        inner = node.value
        if isinstance(inner, dict) and step in inner:
            node = inner[step]
        elif isinstance(inner, list) and step.isdecimal() and int(step) < len(inner):
            node = inner[int(step)]
        else:
            break
    return node
