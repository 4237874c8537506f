"""Words: whatever a function answers, as texts and finite or other numbers, each by its path.

An answer is a number, a text, nothing, an array of any shape, a sequence, a mapping, a set, a data
class, or an exception. Of an exception the class by itself is part of the word. Nothing is left out
in
silence: an object of another kind is an error, because a leak could lie in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set
from numbers import Real
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ParameterError, need

_DEEPEST = 20
_EXACT = 2.0**53  # integers below are floats too


@attrs.frozen
class Refused:
    """What represents an answer where a function raised an exception.

    Args:
        kind: Name of the exception's class. Its message may hold anything and is not compared.
    """

    kind: str


@attrs.frozen(eq=False)
class Word:
    """One answer.

    Args:
        texts: What is no number, by path: texts, types, shapes, lengths, keys.
        numbers: Numbers by path, each shape (k,); NaN and infinity may be among them.
    """

    texts: Mapping[str, str]
    numbers: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, answer: object) -> Word:
        """Return the word of an answer.

        Raises:
            ParameterError: it holds an object that has no known parts.
        """
        texts: dict[str, str] = {}
        numbers: dict[str, NDArray[np.float64]] = {}
        for path, leaf in _leaves(answer, "answer", 0):
            if isinstance(leaf, str):
                texts[path] = leaf
            else:
                numbers[path] = leaf
        return cls(texts, numbers)

    @property
    def refused(self) -> bool:
        """Whether the whole answer is an exception."""
        return self.texts.get("answer", "").startswith("refused:")

    def rounded(self, digits: int) -> Word:
        """Return the same with so many significant decimal digits in every number."""
        numbers = {
            path: np.array([float(f"{value:.{digits - 1}e}") for value in values])
            for path, values in self.numbers.items()
        }
        return Word(self.texts, numbers)

    def text_at(self, path: str) -> str:
        """Return the text at a path, empty where there is none."""
        return self.texts.get(path, "")

    def text(self) -> str:
        """Return the answer as one text, equal for equal answers only."""
        numbers = ((path, values.tobytes().hex()) for path, values in self.numbers.items())
        return repr(sorted([*self.texts.items(), *numbers]))


def _leaves(part: Any, path: str, depth: int) -> Iterator[tuple[str, str | NDArray[np.float64]]]:
    """Paths with a text or an array of numbers, from the top down."""
    need(depth <= _DEEPEST, "attack", f"answers at most {_DEEPEST} levels deep", path, "more")
    if isinstance(part, Refused):
        yield path, f"refused:{part.kind}"
    elif isinstance(part, str | bytes | bool | np.bool_ | None):
        yield path, repr(part)
    elif isinstance(part, Real):
        yield from _number_leaves(part, path)
    elif isinstance(part, np.ndarray | np.generic | complex):
        yield from _array_leaves(np.asarray(part), path, depth)
    elif isinstance(part, Mapping):
        yield f"{path}.keys", repr([*map(repr, part)])
        for key, value in part.items():
            yield from _leaves(value, f"{path}[{key!r}]", depth + 1)
    elif isinstance(part, Set):
        yield path, repr(sorted(map(repr, part)))
    elif isinstance(part, Sequence):
        yield from _sequence_leaves(part, path, depth)
    elif dataclasses.is_dataclass(part) or attrs.has(type(part)):
        module = attrs if attrs.has(type(part)) else dataclasses
        for field in module.fields(type(part)):
            yield from _leaves(getattr(part, field.name), f"{path}.{field.name}", depth + 1)
    elif hasattr(part, "to_numpy"):  # a frame or a column of any library
        yield f"{path}.columns", repr([*map(str, getattr(part, "columns", ()))])
        yield from _leaves(np.asarray(part.to_numpy()), path, depth + 1)
    else:
        requirement = "answers of numbers, texts, arrays and collections of them (see `public`)"
        raise ParameterError("attack", requirement, path, type(part).__name__)


def _array_leaves(
    array: NDArray[Any], path: str, depth: int
) -> Iterator[tuple[str, str | NDArray[np.float64]]]:
    """Shape and kind as texts; numbers in one piece, everything else by its elements."""
    yield f"{path}.shape", f"{array.shape} of {array.dtype}"
    if array.dtype.kind in "fiu":
        numbers = array.astype(np.float64).reshape(-1)
        if array.dtype.kind in "iu" and (np.abs(numbers) >= _EXACT).any():
            yield f"{path}.integers", repr(array.tolist())
        yield path, numbers
    elif array.dtype.kind == "c":
        yield path, np.concatenate([array.real, array.imag], axis=None, dtype=np.float64)
    else:
        for index, element in enumerate(array.reshape(-1).tolist()):
            yield from _leaves(element, f"{path}[{index}]", depth + 1)


def _sequence_leaves(
    part: Sequence[Any], path: str, depth: int
) -> Iterator[tuple[str, str | NDArray[np.float64]]]:
    """Length and kind; numbers in one piece, everything else element by element."""
    yield f"{path}.length", f"{len(part)} of {type(part).__name__}"
    if part and all(isinstance(element, float) for element in part):
        yield path, np.array(part, dtype=np.float64)
        return
    for index, element in enumerate(part):
        yield from _leaves(element, f"{path}[{index}]", depth + 1)


def _number_leaves(value: Real, path: str) -> Iterator[tuple[str, str | NDArray[np.float64]]]:
    """Yield a number as a float, and as a text too where no float is equal to it."""
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = float("inf")
    if number != value and value == value:
        yield f"{path}.exactly", repr(value)
    yield path, np.array([number])
