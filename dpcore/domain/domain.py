"""Domain: declared public facts about the records. Nothing here is computed from records.

`People` says which records are one person's, and how many of them a run uses.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import describe_type, is_finite, is_integer, need_field, one_of, unboxed
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Dates, Holds, Range, Texts
from dpcore.domain.conditions import Condition, range_of, require_conditions
from dpcore.domain.derived import Derived
from dpcore.errors import (
    ParameterError,
    UnfitTargetError,
    UnknownCountError,
    need,
    need_value,
)
from dpcore.rounding import up

ID = "a person's id, a text or a whole number"


@attrs.frozen(kw_only=True)
class People:
    """A column that says whose a record is. The unit of privacy is then a person.

    A person is all records with one id, wherever they stand. Of each person at most `records` are
    used, chosen in secret once a run (`dpcore.private.bounding`). A record without an id belongs to
    no one: it is refused, or left out where records are projected into the domain.

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
        """Return the same relation about these persons.

        Raises:
            ParameterError: it is neither add/remove nor replace-one.
        """
        return adjacency.of_persons(self.records)

    @property
    def premise(self) -> str:
        """What one person is, as a guarantee says it."""
        return (
            f"a person is all records with one id in column {self.column!r}, letter by letter; of "
            f"each at most {self.records}, chosen in secret for the whole run, are used"
        )

    def describe(self) -> str:
        """Describe the rule that an entry must meet."""
        return ID


def require_unit(people: People | None, adjacency: Adjacency) -> None:
    """Persons are declared exactly where they are the unit, with as many records each.

    No table has places that hold no one: what is said of them is for bridges only.

    Raises:
        ParameterError: they are not.
    """
    name = str(adjacency)
    # A claim about one unit says nothing of another: data and relation must be about the same.
    need(
        adjacency.unit != "place",
        "data",
        "add_remove or replace_one: no record of a table can be blank",
        "adjacency",
        name,
        "adjacency",
    )
    need(
        people is not None or not adjacency.of_person,
        name,
        "the column that distinguishes persons ",
        "people",
        None,
        "data.domain",
    )
    relation = adjacency if people is None else people.relation(adjacency)
    need(
        adjacency == relation,
        "data.domain.people",
        f"a relation about persons ({relation})",
        "adjacency",
        name,
        "adjacency",
    )


Column = Range | Categories | Texts
"""A declared column: numbers or dates, a public list of values, or texts that no one listed."""

Table = Mapping[str, Any]
"""Columns by name, all of one length, in the file's own units. A data frame serves."""

_TARGETLESS = "the domain declares no target, so that nothing can be predicted: declare one"


def kind_of_cells(rule: object) -> Holds:
    """Return what a column's cells hold under a declared rule."""
    if isinstance(rule := range_of(rule), Dates | People):
        return Holds.DATES if isinstance(rule, Dates) else Holds.IDENTIFIERS
    return Holds.NUMBERS if isinstance(rule, Range) else Holds.CATEGORIES


@attrs.frozen(kw_only=True, repr=False)
class Domain:
    """What is publicly known about the records, before any of them is read.

    Args:
        columns: Feature columns by name, in encoding order.
        target: Name of the label column; None where nothing is to be predicted.
        labels: Public range of the label, or its classes; given exactly if the target is.
        exact: The public number of records, where the adjacency makes it public.
        limit: A public upper bound on a private number of records, if there is one.
        norm: Rows are scaled down to at most this l2 norm after encoding, if given.
        groups: Columns by name that are no features: models never see them, evaluations may say of
            the groups that they form.
        sampled: How the records came from a population: `independent` draws, `census` (there is no
            other record), or the public size of the population that they were drawn from without
            regard to what they say. None says nothing: no guarantee rests on it.
        derived: How declared columns are made of other cells of the same record, by name. A table
            of records holds what they are made of; whatever else has a column of that name is
            taken to hold what was made.
        only: What a cell of a declared column must be so that its row counts, by the column's name.
            Rows that do not count are left out before anything is computed; `exact`, `limit` and
            the records of one person are of all rows.
        cells: Where equal cells of a range begin: at `dpcore.domain.bins.equal_edges`, or, in what
            was published before, at equal `positions` in [-1, 1].
        people: Whose a record is, and how many of one person's are used: `limit` is then about the
            records that are used. None where a record is the unit.
    """

    columns: Mapping[str, Column]
    _target: str | None = attrs.field(default=None, alias="target")
    _labels: Range | Classes | None = attrs.field(default=None, alias="labels")
    exact: int | None = attrs.field(default=None, converter=unboxed)
    limit: int | None = attrs.field(default=None, converter=unboxed)
    norm: float | None = None
    people: People | None = None
    groups: Mapping[str, Column] = attrs.field(factory=dict)
    sampled: Literal["independent", "census"] | int | None = None
    derived: Mapping[str, Derived] = attrs.field(factory=dict)
    only: Mapping[str, Condition] = attrs.field(factory=dict)
    cells: Literal["nearest_double", "positions"] = attrs.field(
        default="nearest_double", validator=one_of("nearest_double", "positions")
    )

    def __attrs_post_init__(self) -> None:
        need(
            isinstance(self.columns, Mapping) and self.columns,
            "domain",
            "at least one feature column: {name: Range(low, high) or Categories(values)}",
            "columns",
            self.columns and describe_type(self.columns),
        )
        for name, column in self.columns.items():
            need(
                isinstance(column, Column),
                "domain",
                "columns that are Range(low, high), Categories(values) or Texts",
                name,
                describe_type(column),
            )
        whose = "People(column=..., records=...)"
        is_people = isinstance(self.people, People | None)
        need(is_people, "domain", whose, "people", describe_type(self.people))
        # Roles are disjoint: a column is a feature, the target, a group or the person's id.
        need(
            (self._target is None) == (self._labels is None),
            "domain",
            "a target with its labels",
            "target",
            self._target,
        )
        need_field(
            not isinstance(self._labels, Range) or not self._labels.missing,
            self,
            "labels",
            "labels without missing ones",
            owner="domain",
        )
        need_field(
            self._target not in self.columns,
            self,
            "target",
            "a target that is no feature",
            owner="domain",
        )
        if overlap := sorted({*self.groups} & {*self.columns, self._target}):
            raise ParameterError("domain", "groups that are no features", "groups", overlap[0])
        if self.people is not None and self.people.column in self.rules:
            raise ParameterError(
                "domain", "a people's column that is neither feature nor target", "people",
                self.people.column,
            )  # fmt: skip
        for name, derived in self.derived.items():
            is_derived = isinstance(derived, Derived) and name != self._target
            need(is_derived, "domain", "Derived columns, no targets", "derived", name)
        require_conditions(self.only, self.rules)
        self.raw  # noqa: B018  # refuses inputs that are declared in two ways
        # Both counts are public facts: exact where the adjacency fixes it, else at most a limit.
        whole_number = "a whole number of records, at least one record"
        # A population is no smaller than its sample, so that its share lies in [0, 1].
        minimum = self.exact if isinstance(self.exact, int) else 1
        for condition, name, requirement in (
            (self.exact is None or is_integer(self.exact), "exact", whole_number),
            (self.limit is None or is_integer(self.limit), "limit", whole_number),
            (None in (self.exact, self.limit), "limit", "an exact count or a limit, not both"),
            (
                self.sampled in (None, "independent", "census")
                or is_integer(self.sampled, minimum),
                "sampled",
                "independent, census, or the size of a population, no smaller than the records",
            ),
            # A population's size says nothing of how many of it would count.
            (
                not self.only or not is_integer(self.sampled),
                "sampled",
                "independent or census where rows are left out",
            ),
            (
                self.norm is None or (is_finite(self.norm) and self.norm > 0),
                "norm",
                "a finite norm > 0",
            ),
        ):
            need_field(condition, self, name, requirement, owner="domain")

    def __repr__(self) -> str:
        fields = {"columns": self.columns, "target": self._target, "labels": self._labels}
        fields |= {name: getattr(self, name) for name in ("exact", "limit", "norm")}
        further = ("people", "groups", "sampled", "derived", "only")
        fields |= {name: value for name in further if (value := getattr(self, name))}
        return f"Domain({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    @property
    def labelled(self) -> bool:
        """Whether a target is declared."""
        return self._target is not None

    @property
    def target(self) -> str:
        """Name of the label column.

        Raises:
            UnfitTargetError: there is none.
        """
        return need_value(self._target, UnfitTargetError, _TARGETLESS)

    @property
    def labels(self) -> Range | Classes:
        """Public range of the label, or its classes.

        Raises:
            UnfitTargetError: there is no target.
        """
        if self._labels is None:
            raise UnfitTargetError(_TARGETLESS)
        return self._labels

    def relation(self, adjacency: Adjacency) -> Adjacency:
        """Return the same relation of persons or rows, where people or conditions are declared.

        Raises:
            ParameterError: they are, and it is neither add/remove nor replace-one.
        """
        if self.people is not None:
            return self.people.relation(adjacency)
        return adjacency.of_rows() if self.only else adjacency

    @property
    def rules(self) -> dict[str, Column | Classes]:
        """What every declared column must hold, the target's last."""
        # Readers count records by the last column, so that the target's place is fixed.
        target = {self.target: self.labels} if self.labelled else {}
        return {**self.columns, **self.groups, **target}

    @property
    def read(self) -> dict[str, Column | Classes | People]:
        """What every column that a run uses must hold: `rules`, and whose a record is."""
        whose = {} if self.people is None else {self.people.column: self.people}
        return {**whose, **self.rules}

    @property
    def dates(self) -> dict[str, Dates]:
        """The columns of dates, in bins or not, by name."""
        ranges = {name: range_of(rule) for name, rule in self.rules.items()}
        return {name: rule for name, rule in ranges.items() if isinstance(rule, Dates)}

    @property
    def raw(self) -> dict[str, Column | Classes | People]:
        """What every column of a table of records must hold: inputs in place of what is derived.

        Raises:
            ParameterError: an input is derived itself, or is declared to hold something else.
        """
        rules = self.read
        columns = {name: rule for name, rule in rules.items() if name not in self.derived}
        inputs: dict[str, Column | Classes | People] = {}
        # Of a column that is not used, no input is needed.
        derivations = {name: column for name, column in self.derived.items() if name in rules}
        for name, column in derivations.items():
            for source in column.inputs:
                rule: Any = column.operation.cells or rules[name]
                input_rule = columns.get(source, inputs.get(source))
                is_any = isinstance(rule, Texts) and column.operation.cells is not None
                fits = (
                    input_rule is None or is_any or kind_of_cells(input_rule) == kind_of_cells(rule)
                )
                need(
                    source not in self.derived and fits,
                    "domain",
                    "inputs that stand in the file, each declared to hold one kind of cells",
                    "derived",
                    source,
                )
                if input_rule is None:
                    inputs[source] = rule
        return {**inputs, **columns}

    @property
    def records(self) -> int:
        """The exact public number of records.

        Raises:
            UnknownCountError: it is not public; whatever needs it is refused by the plan.
        """
        refusal = "the exact number of records is needed, and it is not public: declare records: N"
        return need_value(self.exact, UnknownCountError, refusal)

    @property
    def at_most(self) -> int | None:
        """A public upper bound on the number of records, or None."""
        return self.exact if self.exact is not None else self.limit

    @property
    def width(self) -> int:
        """Number of encoded feature columns."""
        return sum(column.width for column in self.columns.values())

    @property
    def feature_norm(self) -> float:
        """l2 bound on every encoded row: `norm`, or sqrt(number of columns) if that is less."""
        # Each declared column encodes to a block at most 1 long, however wide it is.
        box = up(math.sqrt(len(self.columns)), roundings=3)
        return box if self.norm is None else min(self.norm, box)

    @property
    def classes(self) -> int:
        """Number of classes of the target; 0 for a range."""
        return self._labels.count if isinstance(self._labels, Classes) else 0

    @property
    def label_bound(self) -> float:
        """M: centred labels lie in [-M, M].

        Raises:
            UnfitTargetError: labels are codes of three or more classes, or there are none.
        """
        return self.labels.half_width

    def uncentre(self, centred: NDArray[np.float64]) -> NDArray[Any]:
        """Predictions in the file's units, clipped to the label range; or classes. Shape (n,)."""
        return self.labels.uncentred(centred)

    def of_part(self, records: int) -> "Domain":
        """Return the domain of a part with a public number of records."""
        return attrs.evolve(self, exact=records, limit=None)


def encoded_names(domain: Domain) -> tuple[str, ...]:
    """Name each encoded column, in order of encoding.

    A range is called as it is declared, and `COLUMN missing` marks its missing entries where they
    are kept. Categories are called `COLUMN=VALUE`; of two only the second has a column.
    """
    return tuple(name for column in domain.columns for name in _names(domain, column))


def _names(domain: Domain, name: str) -> Iterator[str]:
    """Yield the names of one declared column's encoded columns."""
    match domain.columns[name]:
        case Range(missing=missing):
            yield name
            if missing:
                yield f"{name} missing"
        # Two categories share one column of -1 and +1, which is named after the +1.
        case Categories(values=values):
            yield from (f"{name}={value}" for value in (values[1:] if len(values) == 2 else values))
        case column:
            yield from (f"{name} {place}" for place in range(column.width))
