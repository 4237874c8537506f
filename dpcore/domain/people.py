"""People: which records are one person's, and how many of them a run uses."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import is_integer, need_field
from dpcore.records.persons import persons

ID = "a person's id, a text or a whole number"


@attrs.frozen(kw_only=True)
class People:
    """A column that says whose a record is. The unit of privacy is then a person.

    A person is all records with one id, wherever they stand. Of each person at most `records` are
    used, chosen in secret once a run (`dpcore.records.bounding`). A record without an id belongs to
    nobody: it is refused, or left out where records are projected into the domain.

    Args:
        column: Its name; no feature and no target.
        records: k >= 1.
    """

    column: str
    records: int

    def __attrs_post_init__(self) -> None:
        need_field(
            isinstance(self.column, str) and self.column,
            self,
            "column",
            "the name of a column",
            owner="people",
        )
        # A bool is an int to Python, and no number of records.
        need_field(is_integer(self.records), self, "records", "an integer >= 1", owner="people")

    def relation(self, adjacency: Adjacency) -> Adjacency:
        """The same relation about these persons.

        Raises:
            ParameterError: it is neither add/remove nor replace-one.
        """
        return adjacency.of_persons(self.records)

    def misfits(self, values: Any) -> NDArray[np.bool_]:
        """Which records belong to nobody. Shape (n,)."""
        ids = persons(values)
        return np.fromiter((person is None for person in ids), dtype=np.bool_, count=len(ids))

    def describe(self) -> str:
        """The rule an entry must meet."""
        return ID
