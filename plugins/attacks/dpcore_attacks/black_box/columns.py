r"""Columns: words as rows of finite numbers, by rules that are learnt from a part of the words.

Each number is a column by itself, and so is the exponent of its last binary digit, by which noise
of floating-point numbers is known (Mironov 2012). NaN, infinity and what is missing are columns of
their own. Texts, numbers that repeat, and whole words become log-likelihood ratios
:math:`\log\frac{a+1}{b+1}`, from their counts a and b under either neighbour. Numbers that do not
repeat get such ratios by bins. Any function of an answer is a valid column: rules decide what an
attack sees, and never whether its verdict holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_attacks.black_box.words import Word
from dpcore_attacks.laboratory.draws import last_digit

_LARGEST = 1e100  # squares of columns stay finite
_WIDEST = 48  # coordinates of one array that are columns by themselves
_BINS = 24

Rule = Callable[[Sequence[Word]], NDArray[np.float64]]
"""Words to one column each, shape (n, k)."""


@attrs.frozen(eq=False)
class Columns:
    """Rules that were learnt, and the names of the columns that they give."""

    rules: Sequence[Rule]
    names: tuple[str, ...]

    @classmethod
    def learnt(cls, before: Sequence[Word], after: Sequence[Word]) -> Columns:
        """From words of both neighbours, equally many."""
        rules: list[Rule] = []
        names: list[str] = []
        words = [*before, *after]
        # every path that either neighbour ever showed
        for path in dict.fromkeys(path for word in words for path in word.texts):
            rules.append(_by_ratio(before, after, partial(Word.text_at, path=path)))
            names.append(f"the likelihood of {path}")
        lengths = {
            path: max(word.numbers[path].size for word in words if path in word.numbers)
            for path in dict.fromkeys(path for word in words for path in word.numbers)
        }
        sums: list[Rule] = []
        for path, length in lengths.items():
            for rule, rule_names in _of_numbers(before, after, path, length):
                rules.append(rule)
                names += rule_names
            sums.append(_by_bins(before, after, path, length))
        rules.append(_by_ratio(before, after, Word.text))
        names.append("the likelihood of the whole answer")
        if sums:
            rules.append(lambda rows: np.sum([rule(rows) for rule in sums], axis=0))
            names.append("the likelihood of all numbers")
        return cls(rules, tuple(names))

    def rows(self, words: Sequence[Word]) -> NDArray[np.float64]:
        """Return one row a word, all finite; shape (n, number of names)."""
        return np.hstack([rule(words) for rule in self.rules])


def _by_ratio(before: Sequence[Word], after: Sequence[Word], key: Callable[[Word], str]) -> Rule:
    """Return the log-ratio of how often a text came under either neighbour; 0 of one that never
    came.
    """
    first, second = Counter(map(key, before)), Counter(map(key, after))
    ratios = {text: math.log((first[text] + 1) / (second[text] + 1)) for text in first | second}
    return lambda words: np.array([[ratios.get(key(word), 0.0)] for word in words])


def _matrix(words: Sequence[Word], path: str, length: int) -> NDArray[np.float64]:
    """Return the numbers at a path, shape (n, length), NaN where there is none."""
    matrix = np.full((len(words), length), np.nan)
    for row, word in enumerate(words):
        numbers = word.numbers.get(path)
        if numbers is not None:
            matrix[row, : numbers.size] = numbers[:length]
    return matrix


def _finite(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return no NaN and nothing that overflows when it is squared and added up."""
    return np.clip(np.nan_to_num(matrix, nan=0.0), -_LARGEST, _LARGEST)


def _of_numbers(
    before: Sequence[Word], after: Sequence[Word], path: str, length: int
) -> Iterator[tuple[Rule, list[str]]]:
    """Columns of one array: its coordinates, what is no number in it, and what it sums up to."""
    # Of a wide array the coordinates that differ most; its summaries cover them all.
    places = _sensitive_places(before, after, path, length)

    def coordinates(words: Sequence[Word]) -> NDArray[np.float64]:
        return _finite(_matrix(words, path, length)[:, places])

    def digits(words: Sequence[Word]) -> NDArray[np.float64]:
        return last_digit(coordinates(words))

    def strange(words: Sequence[Word]) -> NDArray[np.float64]:
        matrix = _matrix(words, path, length)
        kinds = (np.isnan(matrix), np.isposinf(matrix), np.isneginf(matrix), np.signbit(matrix))
        return np.array([kind.sum(axis=1) for kind in kinds], dtype=np.float64).T

    labels = [path if length == 1 else f"{path}[{place}]" for place in places]
    yield coordinates, labels
    yield digits, [f"the last binary digit of {label}" for label in labels]
    counts = ("NaN or missing", "infinite", "negatively infinite", "with a sign")
    yield strange, [f"how many of {path} are {kind}" for kind in counts]
    if length > 1:
        summaries = ("least", "largest", "sum", "sum of squares", "number of sizes")
        yield (
            lambda words: _summary(_finite(_matrix(words, path, length))),
            [f"the {summary} of {path}" for summary in summaries],
        )


def _sensitive_places(
    before: Sequence[Word], after: Sequence[Word], path: str, length: int
) -> list[int]:
    """Return all coordinates, or as many as become columns, those first whose ranks differ most."""
    if length <= _WIDEST:
        return list(range(length))
    first, second = (_finite(_matrix(words, path, length)) for words in (before, after))
    deviation = np.vstack([first, second]).std(axis=0)
    gaps = np.abs(first.mean(axis=0) - second.mean(axis=0)) / np.where(
        deviation > 0, deviation, 1.0
    )
    return sorted(np.argsort(-gaps, kind="stable")[:_WIDEST].tolist())


def _summary(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    # rounded, so that equal sizes count once where signs were multiplied
    sizes = np.sort(np.round(np.abs(matrix), 12), axis=1)
    kinds = 1 + (np.diff(sizes, axis=1) > 0).sum(axis=1)
    squares = (matrix * matrix).sum(axis=1)
    return np.array([matrix.min(axis=1), matrix.max(axis=1), matrix.sum(axis=1), squares, kinds]).T


def _by_bins(before: Sequence[Word], after: Sequence[Word], path: str, length: int) -> Rule:
    """Return the sum over coordinates of the log-ratios of their bins, cut at quantiles."""
    pair = [_finite(_matrix(words, path, length)) for words in (before, after)]
    cuts = np.quantile(np.vstack(pair), np.linspace(0, 1, _BINS), axis=0)
    ratios = np.zeros((2 * len(cuts) + 1, length))
    for place in range(length):
        # equal cuts are atoms: twice the bin of its left side plus whether it lies right of it
        first, second = (
            np.bincount(_bin(matrix[:, place], cuts[:, place]), minlength=len(ratios)) + 1.0
            for matrix in pair
        )
        ratios[:, place] = np.log(first / second)

    def rule(words: Sequence[Word]) -> NDArray[np.float64]:
        matrix = _finite(_matrix(words, path, length))
        total = np.zeros((len(words), 1))
        for place in range(length):
            total[:, 0] += ratios[_bin(matrix[:, place], cuts[:, place]), place]
        return total

    return rule


def _bin(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return an even number between two cuts, an odd one at a cut."""
    left, right = np.searchsorted(cuts, values, "left"), np.searchsorted(cuts, values, "right")
    return np.asarray(left + right)
