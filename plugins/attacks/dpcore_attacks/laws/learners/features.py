"""What a feature map promises: a norm that holds for every row, and nothing but public
randomness.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, PublicRandomness
from dpcore.models import FeatureMap
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.source_constants import written, written_rows
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge_all, skip_if

NORM = Law("features.norm", "No row of the domain has features longer than the stated norm.")
SHAPE = Law("features.shape", "Features are finite, one row each, as wide as stated.")
PURE = Law(
    "features.pure", "Equal randomness and equal rows give equal features, whatever came before."
)
ROW_WISE = Law(
    "features.row-wise", "A row by itself has the features of that row in any table, bit for bit."
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
    """Return all laws of one feature map on one domain, at several public keys."""
    rows = Rows(domain)
    rng = np.random.default_rng(seed)
    # Corners reach the norm, anything else fills the domain, and the rest are rows of few cells.
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
    # The norm's search by itself needs the rows' own units; the others work on encoded rows.
    checks: dict[Law, Callable[..., str]] = {
        NORM: partial(_norm, rows=rows, seed=seed),
        SHAPE: _shape,
        PURE: _pure,
        ROW_WISE: _row_wise,
        COLUMNS: _columns,
    }
    subject = f"{type(features).__name__}, {rows.width} columns"
    return judge_all(checks, subject, features, domain, encoded)


def _norm(
    features: FeatureMap, domain: Domain, encoded: NDArray[np.float64], rows: Rows, seed: int
) -> str:
    """Structured rows at several keys, then ascent from the longest by ever smaller steps."""
    bound, longest = features.norm(domain), 0.0
    for key in range(_KEYS):
        values = features.draw(domain, PublicRandomness(key))(encoded)
        longest = max(longest, float(np.linalg.norm(values, axis=1).max()))
    rng = np.random.default_rng(seed)
    transform = features.draw(domain, PublicRandomness(0))

    def lengths(raw: NDArray[np.float64]) -> NDArray[np.float64]:
        projected = rows.project(raw, np.zeros(len(raw))).features
        return np.asarray(np.linalg.norm(transform(projected), axis=1))

    code = written(features, 1.0)
    raw = np.vstack([rows.structured(rng), written_rows(code, rows, rng, _WRITTEN)[0]])
    sizes = lengths(raw)
    longest = max(longest, float(sizes.max()))
    # A random search uphill: the clip's sensitivity rests on this norm for every row.
    for step in 0.5 ** np.arange(_ASCENTS):
        best = raw[np.argsort(sizes)[-_LONGEST:]]
        moves = step * rng.normal(size=(8 * len(best), rows.width))
        raw = np.vstack([best, np.clip(np.repeat(best, 8, axis=0) + moves, -1, 1)])
        sizes = lengths(raw)
        longest = max(longest, float(sizes.max()))
    fail_if(not longest <= bound, f"a row has norm {longest!r}, {bound!r} is stated")
    return f"longest {longest:.4g} of {bound:.4g}"


def _shape(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    width = features.width(domain)
    for count in (len(encoded), 1, 0):
        values = np.asarray(features.draw(domain, PublicRandomness(0))(encoded[:count]))
        fail_if(
            values.shape != (count, width),
            f"{count} rows became {values.shape}, the width is {width}",
        )
        fail_if(not np.isfinite(values).all(), "a feature is not finite")
    return f"width {width}"


def _pure(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    first = features.draw(domain, PublicRandomness(3))
    expected = first(encoded).copy()
    np.random.random()  # noqa: NPY002  # code that reads the global generator sees it move
    # Another key and other rows in between: a cache must not survive them.
    features.draw(domain, PublicRandomness(4))(-encoded)
    second_map = features.draw(domain, PublicRandomness(3))
    for values in (first(encoded), second_map(encoded)):
        fail_if(
            not np.array_equal(expected, values),
            "equal randomness and rows gave different features",
        )
    _without_history(features, domain, encoded)
    return ""


def _without_history(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> None:
    """Blocks in other orders, each order by a map drawn anew: small rows first, or large ones."""
    order = np.argsort(np.abs(encoded).max(axis=1, initial=0.0), kind="stable")
    blocks = [encoded[part] for part in np.array_split(order, _BLOCKS)]
    orders = (range(_BLOCKS), range(_BLOCKS)[::-1])
    values_by_block = []
    for numbers in orders:
        transform = features.draw(domain, PublicRandomness(3))
        values_by_block.append({number: transform(blocks[number]).copy() for number in numbers})
    for number in range(_BLOCKS):
        fail_if(
            not np.array_equal(values_by_block[0][number], values_by_block[1][number]),
            "features depend on the rows that were seen before",
        )


def _row_wise(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    """Single, in halves, backwards, and next to a thousand rows as next to few: the same bits."""
    half = len(encoded) // 2
    for key in range(_KEYS):
        transform = features.draw(domain, PublicRandomness(key))
        table_values = transform(encoded).copy()
        # Without determinism there is nothing to compare; another law says of that.
        skip_if(
            transform(encoded).tobytes() != table_values.tobytes(),
            "equal rows have other features each time: see features.pure",
        )
        tables = {
            "in a half of the table": (transform(encoded[:half]), table_values[:half]),
            "in another layout": (transform(np.asfortranarray(encoded)), table_values),
            "backwards": (transform(encoded[::-1])[::-1], table_values),
            "next to copies": (transform(np.repeat(encoded, 12, axis=0))[::12], table_values),
            "next to zeros": (
                transform(np.vstack([encoded[:2], 0 * encoded]))[:2],
                table_values[:2],
            ),
        }
        for row in range(len(encoded)):
            tables[f"alone (row {row})"] = (
                transform(encoded[row : row + 1]),
                table_values[row : row + 1],
            )
        for where, (values, expected) in tables.items():
            fail_if(
                values.tobytes() != expected.tobytes(),
                f"a row has other features {where} than among all",
            )
    return f"{len(tables)} tables, to the last bit"


def _columns(features: FeatureMap, domain: Domain, encoded: NDArray[np.float64]) -> str:
    transform = features.draw(domain, PublicRandomness(0))
    table_values, blocks = transform(encoded), list(transform.columns(encoded))
    fail_if(
        {block.shape[0] for block in blocks} != {len(encoded)},
        "a block has not one row for each record",
    )
    stacked = np.hstack(blocks)
    fail_if(
        stacked.shape != table_values.shape,
        f"blocks make up {stacked.shape}, the whole is {table_values.shape}",
    )
    # Blocks come before a norm that needs all columns, so that it is taken here.
    if transform.rescaled:
        stacked /= np.maximum(1.0, np.linalg.norm(stacked, axis=1, keepdims=True))
    fail_if(
        not np.allclose(stacked, table_values, rtol=1e-9, atol=1e-12),
        "blocks of columns are other features than the whole",
    )
    return f"{len(blocks)} blocks"
