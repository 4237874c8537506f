"""`isolated_copies`: hand the private and the public side copies, each its own.

A copy that is made from bytes written before any record was opened holds nothing of a record,
whatever a private function does to the objects it was given.
"""

import copy
import hashlib
import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.learner import Answer, Published
from dpcore.models.description import Description
from dpcore.models.figures import Statistics
from dpcore.query import Query
from dpcore.records import unwritable

Thing = TypeVar("Thing")

Arrays = Mapping[str, NDArray[Any]]
"""The arrays of one model, by name."""


class Before(Generic[Thing]):
    """Something public as it is now; every `copy` of it is a new one, of this moment.

    It is kept as bytes where it can be serialised, else as one deep copy that no one is given.
    """

    def __init__(self, thing: Thing) -> None:
        self._template: Thing | None = None
        # Rebuilt once right away: a class whose bytes cannot be read back is found out before any
        # record is opened.
        try:
            self._bytes = pickle.dumps(thing)
            pickle.loads(self._bytes)  # noqa: S301  # written in the line above
        except Exception:  # whatever a field of a third party's class raises
            self._bytes, self._template = b"", copy.deepcopy(thing)

    def copy(self) -> Thing:
        """Return a copy that shares nothing with an earlier one, but for what has no copies."""
        if not self._bytes:
            return copy.deepcopy(cast(Thing, self._template))
        return cast(Thing, pickle.loads(self._bytes))  # noqa: S301  # written by this object


def frozen(query: Query) -> Query:
    """Copy a query, and make its arrays read-only for good."""
    return query.with_args(_read_only(query.args))


def _read_only(value: Any) -> Any:
    # Every array is copied: who reads a view of the asker's own may reach what it is a view of.
    if isinstance(value, np.ndarray) and value.dtype != object:
        return unwritable(value.copy())
    if isinstance(value, dict):
        return {key: _read_only(element) for key, element in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_read_only(element) for element in value)
    return copy.deepcopy(value)


def transcript(answers: Iterable[Answer]) -> str:
    """Return a digest of what was asked, in order, with every byte of the queries' `args`."""
    digest = hashlib.sha256()
    # Order and number are part of the digest: the same asks in another order differ.
    for answer in answers:
        _add(digest, (answer.query.name, answer.number, answer.query.args))
    return digest.hexdigest()


def settled(model: Published) -> Published:
    """Convert tables to plain values, so that nothing can state another number or text later."""
    # Not by a method that a derived class could replace.
    return Statistics.settled(model) if isinstance(model, Statistics) else model


def collect_arrays(model: Published) -> Arrays:
    """Copy a model's arrays as they are now: the bytes compared are the bytes written."""
    return {str(name): np.array(array) for name, array in sorted(model.arrays().items())}


def published(model: Published, arrays: Arrays, description: Description | None = None) -> str:
    """Return a digest of a model's arrays and of the texts of all tables.

    It covers the arrays' names, types, shapes and every byte.

    Args:
        model: `settled`.
        arrays: What it reported once.
        description: Likewise, where it hands over one.
    """
    digest = hashlib.sha256()
    _add(digest, {name: np.asarray(array) for name, array in arrays.items()})
    parts: list[Any] = [model.tables] if isinstance(model, Statistics) else []
    # Names, labels and units are published too: a text can carry as much as a number.
    if description is not None:
        parts += [type(model).__qualname__, description.tables, description.pictures]
    for part in parts:
        # The order of tables and columns is published, and so are cells for which JSON has no word.
        _add(
            digest,
            [(name, [*t.columns.items()], t.data()["intervals"]) for name, t in part.items()]
            if isinstance(part, Mapping)
            else part,
        )
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add everything that distinguishes two values, so that equal digests mean equal values."""
    # Types and lengths go in as well, so that no two values run together to the same bytes. What
    # asks are mostly made of comes first, since every query of a run is reported twice.
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        # The order in memory counts too: files are written in it.
        form = repr(
            (
                str(value.dtype) if value.dtype.kind == "V" else value.dtype.str,
                value.shape,
                value.flags.fnc,
            )
        )
        digest.update(b"#%d %s" % (len(form), form.encode()))
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, str | bytes | int | float | complex | None):
        text = repr(value).encode()
        digest.update(b"%s %d " % (type(value).__name__.encode(), len(text)) + text)
    elif isinstance(value, list | tuple):
        digest.update(b"[%d" % len(value))
        for element in value:
            _add(digest, element)
    elif isinstance(value, Mapping):
        _add(digest, [(str(key), value[key]) for key in sorted(value, key=str)])
    elif attrs.has(type(value)):
        fields = [(f.name, getattr(value, f.name)) for f in attrs.fields(type(value)) if f.init]
        _add(digest, (type(value).__qualname__, fields))
    else:
        # Of a class that reveals nothing of its fields, the attributes are all there is to compare.
        _add(digest, (type(value).__qualname__, getattr(value, "__dict__", None)))
