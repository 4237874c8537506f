r"""Weights of records: a declared column says how much each one counts.

A record of weight w counts :math:`u=w/h\in[0,1]`, with h the end of the column's declared range,
which is public: never the largest weight seen. Every contribution c of a record is clipped as if it
counted 1, and then multiplied by u. So each bound holds as it is:

* its length is at most u times that of c: sums stay within their clips, and a pair of records of
  weight h moves a sum as far as without weights;
* no entry that is not negative becomes negative;
* inner products are multiplied by u u' >= 0, so vectors that are `acute` stay so. Gram matrices are
  of rows times the root of u.

A sum of weights is over h, too, and as private as they are: the release counts it.
"""

import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Range, Records
from dpcore.encoding.tables import row_lengths
from dpcore.errors import need
from dpcore_tables.layout import Layout
from dpcore_tables.sums import FACTOR_UNIT


def require_weights(domain: Domain, weight: str, owner: str) -> None:
    """Check the column that `weight` names.

    Raises:
        ParameterError: it is no declared number that is never negative and never missing, or the
            only column; or rows are shortened to a norm, and weights with them.
    """
    column = domain.columns.get(weight)
    is_usable = isinstance(column, Range) and column.low >= 0 and not column.missing
    need(is_usable, owner, "a declared number from 0 on, never missing", "weight", weight)
    need(len(domain.columns) > 1, owner, "a column next to the weights", "weight", weight)
    need(domain.norm is None, owner, "no weights where rows are scaled to a norm", "weight", weight)


def factors_of(block: Records, domain: Domain, weight: str) -> NDArray[np.float64]:
    """PRIVATE: u of every record, a multiple of 2^-20 in [0, 1]; no number counts 0. Shape (n,)."""
    column, start = (
        domain.columns[weight],
        Layout.of(domain).starts[[*domain.columns].index(weight)],
    )
    assert isinstance(column, Range), "weights are numbers"
    with np.errstate(invalid="ignore"):
        weights = column.centre + column.half_width * block.features[:, start]
        units = np.rint(np.ldexp(np.clip(weights / column.high, 0.0, 1.0), -FACTOR_UNIT))
    return np.asarray(np.ldexp(np.where(np.isfinite(units), units, 0.0), FACTOR_UNIT))


def weighted_rows(
    rows: NDArray[np.float64], factors: NDArray[np.float64], clip: float
) -> NDArray[np.float64]:
    """PRIVATE: rows at most `clip` long, times what their records count; shape (n, p)."""
    with np.errstate(over="ignore", invalid="ignore"):
        longer = np.maximum(row_lengths(rows) / clip, 1.0)
        return np.asarray(rows / longer * factors[:, None])
