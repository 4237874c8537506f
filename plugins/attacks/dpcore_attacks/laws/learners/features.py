"""What a feature map promises: a norm that holds for every row, and nothing but public coins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.learning.features.base import FeatureMap
from dpcore.randomness import PublicCoins
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.source_constants import written, written_rows
from dpcore_attacks.laws.law import BrokenLawError, Law, NotApplicableError, Verdict, judge

NORM = Law("features.norm", "No row of the domain has features longer than the stated norm.")
SHAPE = Law("features.shape", "Features are finite, one row each, as wide as stated.")
PURE = Law("features.pure", "Equal coins and equal rows give equal features, whatever came before.")
ROW_WISE = Law(
    "features.row-wise", "A row alone has the features of that row in any table, bit for bit."
)
COLUMNS = Law(
    "features.columns-agree", "Made in blocks of columns, features are the same to within rounding."
)

LAWS = (NORM, SHAPE, PURE, ROW_WISE, COLUMNS)

_KEYS = 5
_BLOCKS = 4
_LONGEST = 8  # rows from which ascent goes on
_ASCENTS = 12
_WRITTEN = 400  # rows made of the numbers in a map's code


def feature_verdicts(features: FeatureMap, domain: Domain, seed: int = 0) -> list[Verdict]:
    """All laws of one feature map on one domain, at several public keys."""
    rows = Rows(domain)
    rng = np.random.default_rng(seed)
    raw = np.vstack(
        [
            rows.corners(rng, 40),
            rows.anywhere(rng, 40),
            np.eye(rows.width)[:20],
            np.zeros((1, rows.width)),
            rows.corners(rng, 1),
        ]
    )
    encoded = rows.project(raw, np.zeros(len(raw))).features
    checks: dict[Law, Callable[[FeatureMap, Domain, NDArray[np.float64]], str]] = {
        NORM: partial(_norm, rows=rows, seed=seed),
        SHAPE: _shape,
        PURE: _pure,
        ROW_WISE: _row_wise,
        COLUMNS: _columns,
    }
    subject = f"{type(features).__name__}, {rows.width} columns"
    return [
        judge(law, subject, partial(check, features, domain, encoded))
        for law, check in checks.items()
    ]


def _norm(
    features: FeatureMap, domain: Domain, encoded: NDArray[np.float64], rows: Rows, seed: int
) -> str:
    """Structured rows at several keys, then ascent from the longest by ever smaller steps."""
    stated, longest = features.norm(domain), 0.0
    for key in range(_KEYS):
        found = features.draw(domain, PublicCoins(key))(encoded)
        longest = max(longest, float(np.linalg.norm(found, axis=1).max()))
    rng = np.random.default_rng(seed)
    drawn = features.draw(domain, PublicCoins(0))

    def lengths(raw: NDArray[np.float64]) -> NDArray[np.float64]:
        projected = rows.project(raw, np.zeros(len(raw))).features
        return np.asarray(np.linalg.norm(drawn(projected), axis=1))

    code = written(features, 1.0)
    raw = np.vstack([rows.structured(rng), written_rows(code, rows, rng, _WRITTEN)[0]])
    sizes = lengths(raw)
    longest = max(longest, float(sizes.max()))
    for step in 0.5 ** np.arange(_ASCENTS):
        best = raw[np.argsort(sizes)[-_LONGEST:]]
        moves = step * rng.normal(size=(8 * len(best), rows.width))
        raw = np.vstack([best, np.clip(np.repeat(best, 8, axis=0) + moves, -1, 1)])
        sizes = lengths(raw)
        longest = max(longest, float(sizes.max()))
    if not longest <= stated:
        raise BrokenLawError(f"a row has norm {longest!r}, {stated!r} is stated")
    return f"longest {longest:.4g} of {stated:.4g}"


def _shape(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    width = features.width(domain)
    for count in (len(encoded), 1, 0):
        found = np.asarray(features.draw(domain, PublicCoins(0))(encoded[:count]))
        if found.shape != (count, width):
            raise BrokenLawError(f"{count} rows became {found.shape}, the width is {width}")
        if not np.isfinite(found).all():
            raise BrokenLawError("a feature is not finite")
    return f"width {width}"


def _pure(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    first = features.draw(domain, PublicCoins(3))
    kept = first(encoded).copy()
    np.random.random()  # noqa: NPY002  # whoever reads the global generator sees it move
    features.draw(domain, PublicCoins(4))(-encoded)
    again = features.draw(domain, PublicCoins(3))
    for found in (first(encoded), again(encoded)):
        if not np.array_equal(kept, found):
            raise BrokenLawError("equal coins and rows gave different features")
    _without_history(features, domain, encoded)
    return ""


def _without_history(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> None:
    """Blocks in other orders, each order by a map drawn anew: small rows first, or large ones."""
    order = np.argsort(np.abs(encoded).max(axis=1, initial=0.0), kind="stable")
    blocks = [encoded[part] for part in np.array_split(order, _BLOCKS)]
    orders = (range(_BLOCKS), range(_BLOCKS)[::-1])
    found = []
    for numbers in orders:
        drawn = features.draw(domain, PublicCoins(3))
        found.append({number: drawn(blocks[number]).copy() for number in numbers})
    for number in range(_BLOCKS):
        if not np.array_equal(found[0][number], found[1][number]):
            raise BrokenLawError("features depend on the rows that were seen before")


def _row_wise(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    """Alone, in halves, backwards, and beside a thousand rows as beside few: the same bits."""
    half = len(encoded) // 2
    for key in range(_KEYS):
        drawn = features.draw(domain, PublicCoins(key))
        whole = drawn(encoded).copy()
        if drawn(encoded).tobytes() != whole.tobytes():
            raise NotApplicableError("equal rows have other features each time: see features.pure")
        others = {
            "in a half of the table": (drawn(encoded[:half]), whole[:half]),
            "in another layout": (drawn(np.asfortranarray(encoded)), whole),
            "backwards": (drawn(encoded[::-1])[::-1], whole),
            "beside copies": (drawn(np.repeat(encoded, 12, axis=0))[::12], whole),
            "beside zeros": (drawn(np.vstack([encoded[:2], 0 * encoded]))[:2], whole[:2]),
        }
        for row in range(len(encoded)):
            others[f"alone (row {row})"] = drawn(encoded[row : row + 1]), whole[row : row + 1]
        for where, (found, known) in others.items():
            if found.tobytes() != known.tobytes():
                raise BrokenLawError(f"a row has other features {where} than among all")
    return f"{len(others)} tables, to the last bit"


def _columns(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    drawn = features.draw(domain, PublicCoins(0))
    whole, blocks = drawn(encoded), list(drawn.columns(encoded))
    if {block.shape[0] for block in blocks} != {len(encoded)}:
        raise BrokenLawError("a block has not one row for each record")
    put_together = np.hstack(blocks)
    if put_together.shape != whole.shape:
        raise BrokenLawError(f"blocks make up {put_together.shape}, the whole is {whole.shape}")
    if drawn.rescaled:
        put_together /= np.maximum(1.0, np.linalg.norm(put_together, axis=1, keepdims=True))
    if not np.allclose(put_together, whole, rtol=1e-9, atol=1e-12):
        raise BrokenLawError("blocks of columns are other features than the whole")
    return f"{len(blocks)} blocks"
