"""Groups: the cells of public columns, that metrics are told of one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Categories
from dpcore.domain.domain import Domain
from dpcore.errors import ParameterError, near

MOST_GROUPS = 1 << 12


@attrs.frozen(kw_only=True, eq=False)
class Groups:
    """Combinations of the values of declared columns, those without records too.

    Args:
        columns: Categories, by name.
    """

    columns: Mapping[str, Categories]

    @classmethod
    def of(cls, domain: Domain, by: tuple[str, ...]) -> Groups:
        """The groups by some columns of a domain, features or not.

        Raises:
            ParameterError: one is not declared, stands twice or has no public list of values; or
                there are too many groups.
        """
        declared = {**domain.columns, **domain.groups}
        found = {}
        for name in by:
            column = declared.get(name)
            if not isinstance(column, Categories) or name in found:
                listed = ", ".join(
                    key for key, one in declared.items() if isinstance(one, Categories)
                )
                raise ParameterError(
                    "evaluate", "declared categories", "by", name, "evaluate.by",
                    message=f"needs different columns with declared categories "
                    f"({listed or 'the domain has none; declare groups'}), "
                    f"got {name!r}{near(name, declared)}",
                )  # fmt: skip
            found[name] = column
        count = math.prod(len(column.values) for column in found.values())
        if not found or count > MOST_GROUPS:
            raise ParameterError(
                "evaluate", f"1 to {MOST_GROUPS} groups", "by", count, "evaluate.by"
            )
        return cls(columns=found)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each group, such as `smoker=yes, sex=female`."""
        several = product(*(column.values for column in self.columns.values()))
        return tuple(
            ", ".join(f"{name}={value}" for name, value in zip(self.columns, cell, strict=True))
            for cell in several
        )

    def codes(self, table: Mapping[str, Any]) -> NDArray[np.intp]:
        """PRIVATE: the number of every record's group, -1 where a value is none. Shape (n,)."""
        found, known = np.zeros(1, dtype=np.intp), np.ones(1, dtype=np.bool_)
        for name, column in self.columns.items():
            own = column.codes(table[name])
            found, known = found * len(column.values) + own, known & (own >= 0)
        return np.where(known, found, -1)
