"""`source_constants`: read the numbers in a statistic's code: there it may behave differently.

No search of random rows meets `abs(label - 0.31) < 0.02`. But the code says so: numbers in it, in
the fields of its learner and in what its functions refer to are where records are put, a hair to
either side of them, and how large groups are made.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from types import CodeType, FunctionType
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_attacks.attacks.neighbours import Configuration
from dpcore_attacks.attacks.paths import Path
from dpcore_attacks.attacks.rows import Rows

_MOST = 48  # numbers that are tried
_FUNCTIONS = 300  # functions that are read
_LARGEST = 1e6
_LIBRARIES = {"dpcore", "numpy", "scipy", "attr", "attrs", "abc", "typing", "math"}
_HAIR = (0.0, 0.0, 1e-9, -1e-9, 1e-3, -1e-3, 0.01, -0.01)
_USUAL = (0.0, 1.0, -1.0)
_COUNTS = 40  # groups of at most so many records


@attrs.frozen(eq=False)
class Written:
    """Numbers and files that were read off the code of a component.

    Args:
        numbers: Within [-1, 1], of both signs, without 0 and 1: for entries of rows and labels.
        counts: Whole ones from 2 on: for the sizes of groups.
        files: Of the code, whose branches can be followed.
    """

    numbers: NDArray[np.float64]
    counts: tuple[int, ...]
    files: frozenset[str]


def written(component: Any, label_bound: float) -> Written:
    """Read numbers off a component: its classes, the functions they refer to, its fields.

    Args:
        label_bound: Numbers up to it are labels in other units.
    """
    functions = [*_functions(component if isinstance(component, type) else type(component))]
    numbers_of = ((*_of_code(f.__code__), *_closure_numbers(f)) for f in functions)
    values = dict.fromkeys([*_fields(component), *chain.from_iterable(numbers_of)])
    # a number may be in units of rows or of labels, and represent either sign; order is kept
    numbers = dict.fromkeys(
        sign * number / unit
        for number in values
        for unit in (1.0, label_bound)
        for sign in (1.0, -1.0)
        if 0 < abs(number) / unit < 1
    )
    # an integer may be compared with a number of records
    counts = sorted({int(n) for n in values if 2 <= n <= _LARGEST and n == int(n)})
    return Written(
        numbers=np.array([*numbers][:_MOST], dtype=np.float64),
        counts=tuple(counts[:_MOST]),
        files=frozenset(function.__code__.co_filename for function in functions),
    )


def _fields(component: Any) -> Iterator[float]:
    for field in attrs.fields(type(component)) if attrs.has(type(component)) else ():
        yield from _plain(getattr(component, field.name))


def _plain(value: Any) -> Iterator[float]:
    # flags count as integers in Python, and are no thresholds
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, tuple | list | frozenset):
            for part in value:
                yield from _plain(part)
        return
    if math.isfinite(value) and 0 < abs(value) <= _LARGEST:
        yield float(value)


def _is_authors_code(module: str | None) -> bool:
    # constants of libraries say nothing about where this statistic behaves differently
    root = (module or "").partition(".")[0]
    return bool(root) and root not in _LIBRARIES and root not in sys.stdlib_module_names


def _functions(cls: type[Any]) -> Iterator[FunctionType]:
    """Methods of a class's own, and the functions that these refer to, however deep."""
    queue: list[Any] = [
        value for base in cls.__mro__ if base is not object for value in vars(base).values()
    ]
    identities: set[int] = set()
    while queue and len(identities) < _FUNCTIONS:
        function = queue.pop(0)
        # class methods and properties wrap the function that has the code
        function = (
            getattr(function, "__func__", None) or getattr(function, "fget", None) or function
        )
        if (
            not isinstance(function, FunctionType)
            or id(function) in identities
            or not _is_authors_code(function.__module__)
        ):
            continue
        identities.add(id(function))
        yield function
        cells = [*_inside(function)]
        global_values = [function.__globals__.get(name) for name in _names(function.__code__)]
        queue += [value for value in (*cells, *global_values) if callable(value)]


def _inside(function: FunctionType) -> Iterator[Any]:
    """Yield what its closure holds; a cell may be empty."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            yield cell.cell_contents


def _closure_numbers(function: FunctionType) -> Iterator[float]:
    """Numbers in its closure, its defaults, and under the global names that it reads."""
    for cell in _inside(function):
        yield from _plain(cell)
    for value in (function.__defaults__ or ()) + tuple((function.__kwdefaults__ or {}).values()):
        yield from _plain(value)
    for name in _names(function.__code__):
        yield from _plain(function.__globals__.get(name))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _of_code(code: CodeType) -> Iterator[float]:
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _of_code(value)
        else:
            yield from _plain(value)


def written_rows(
    given: Written, rows: Rows, rng: np.random.Generator, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows and labels (in units of the label bound) of which most entries are written numbers."""
    values = np.concatenate([given.numbers, _USUAL])

    def draw(shape: tuple[int, ...]) -> NDArray[np.float64]:
        # a hair to either side of a number: there a comparison changes its answer
        numbers = rng.choice(values, shape) + rng.choice(_HAIR, shape)
        return np.where(rng.random(shape) < 0.8, numbers, rng.uniform(-1, 1, shape))

    raw = draw((count, rows.width))
    is_uniform = rng.integers(4) == 0  # one number for all entries
    raw = np.where(is_uniform, raw[:, :1], raw)
    return np.clip(raw, -1, 1), np.clip(draw((count,)), -1, 1)


def written_starts(
    given: Written, rows: Rows, base: int, rng: np.random.Generator
) -> Iterator[Configuration]:
    """Equal or few base rows, and a row that comes to where the code looks, or leaves from there.

    As many base rows of one kind as a written count says, or one more or fewer.
    """
    while True:
        kinds = min(base, 2)
        raw, labels = written_rows(given, rows, rng, kinds + 2)
        plain = rng.choice((1.0, -1.0, 0.0, 0.5), (kinds, rows.width))
        if rng.integers(2):
            raw[:kinds], labels[:kinds] = plain, rng.choice((-1.0, 1.0), kinds)
        if kinds and rng.integers(2):
            raw[-1] = raw[0]
            labels[-1] = labels[0]
        counts = np.array([base] if kinds == 1 else [base - base // 2, base // 2][:kinds])
        # groups of as many records as the code counts, or one fewer: the next record completes them
        near = [c + d for c in given.counts for d in (-1, 0) if 0 < c + d < base]
        if kinds == 2 and near and rng.integers(4):
            first = int(rng.choice(near))
            counts = np.array([first, base - first])
            raw[-1], labels[-1] = raw[0], labels[0]
            raw[-2], labels[-2] = raw[1], labels[1]
        yield Configuration(
            raw=raw,
            labels=labels * rows.label_bound,
            counts=counts.astype(np.intp),
            position=float(rng.choice((1.0, 0.0, 0.5))),
            origin="numbers of the code",
        )


def written_path(given: Written, rows: Rows, size: int, rng: np.random.Generator) -> Path:
    """From plain records to as many where the code looks; or the other way round."""
    kinds = max(1, min(size, _COUNTS))
    raw, labels = written_rows(given, rows, rng, kinds)
    plain = np.repeat(rng.choice((1.0, -1.0, 0.3), (1, rows.width)), kinds, axis=0)
    plain_labels = np.repeat(rng.choice((1.0, -1.0), 1), kinds)
    old = np.resize(np.arange(kinds), size)
    new, kinds_of = old + kinds, [plain, raw]
    label_parts = [plain_labels, labels]
    # or the way back, so that the first step leaves the code's numbers
    if rng.integers(2):
        kinds_of, label_parts = kinds_of[::-1], label_parts[::-1]
    return Path(
        raw=np.vstack(kinds_of),
        labels=np.concatenate(label_parts),
        old=old,
        new=new,
        rest=old[:0],
        origin="a path to the numbers of the code",
    )
