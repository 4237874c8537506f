"""Groups: the cells of public columns, that metrics are reported of one by one."""

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
from dpcore.encoding.columns import read_codes
from dpcore.errors import ParameterError, near, need

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
        """Return the groups by some columns of a domain, features or not.

        Raises:
            ParameterError: one is not declared, occurs twice or has no public list of values; or
                there are too many groups.
        """
        declared = {**domain.columns, **domain.groups}
        group_columns = {}
        for name in by:
            if not isinstance(column := declared.get(name), Categories) or name in group_columns:
                choices = ", ".join(
                    key
                    for key, declared_column in declared.items()
                    if isinstance(declared_column, Categories)
                )
                raise ParameterError(
                    "evaluate", "declared categories", "by", name, "evaluate.by",
                    message=f"needs different columns with declared categories "
                    f"({choices or 'the domain has none; declare groups'}), "
                    f"got {name!r}{near(name, declared)}",
                )  # fmt: skip
            group_columns[name] = column
        # Every combination counts, since it is private which of them have records.
        count = math.prod(len(column.values) for column in group_columns.values())
        need(
            group_columns and count <= MOST_GROUPS,
            "evaluate",
            f"1 to {MOST_GROUPS} groups",
            "by",
            count,
            "evaluate.by",
        )
        return cls(columns=group_columns)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each group, such as `smoker=yes, sex=female`."""
        several = product(*(column.values for column in self.columns.values()))
        return tuple(
            ", ".join(f"{name}={value}" for name, value in zip(self.columns, cell, strict=True))
            for cell in several
        )

    def codes(self, table: Mapping[str, Any]) -> NDArray[np.intp]:
        """PRIVATE: return the number of every record's group, -1 where a value is none. Shape
        (n,).
        """
        # Mixed-radix numbers in the order of `labels`: the last column changes fastest.
        numbers, is_member = np.zeros(1, dtype=np.intp), np.ones(1, dtype=np.bool_)
        for name, column in self.columns.items():
            column_codes = read_codes(column, table[name])
            numbers, is_member = (
                numbers * len(column.values) + column_codes,
                is_member & (column_codes >= 0),
            )
        return np.where(is_member, numbers, -1)
