"""Adjacency: which two datasets are neighbours. Part of every guarantee, never implied.

An adjacency is a small partially ordered value: may a record come or go, how far may the encoded
features of one record move, may its label change. A claim proved for one relation holds for every
smaller one; anything else is an error. It lives after projection into the domain: a feature radius
is an l2 distance in encoded coordinates, and datasets are multisets of records.

Its unit is a record, or a person with all their records, of which at most `records` are used
(`dpcore.private.bounding`). Or it is a row, which is replaced and may be left out before and after
(`dpcore.domain.conditions`): a person of at most one record. Or it is a place: a list has a known
number of places, each of which holds a record or the blank one, which contributes nothing. No claim
about one unit covers another, but that one about rows covers the replacement of a record.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import attrs

from dpcore.errors import AdjacencyError, need


@attrs.frozen
class Adjacency:
    """Neighbours differ in one record: its presence, its features (within a radius), its label.

    Args:
        membership: One record may be added or removed.
        feature_radius: How far one record's encoded features may move in l2; 0 fixes them,
            `math.inf` lets them move anywhere in the domain.
        label: The label of that same record may change to any other in the domain.
        unit: Whether all this is said of one record, of all used records of one person at once, of
            one row that may be left out, or of one place, whose record is there or blank.
        records: How many records of one person are used at most; 1 where the unit is a record.
    """

    membership: bool
    feature_radius: float
    label: bool
    unit: Literal["record", "person", "row", "place"] = "record"
    records: int = 1

    def __attrs_post_init__(self) -> None:
        radius, count = self.feature_radius, self.records
        need(radius >= 0, "replace_features", "a radius >= 0 (or inf)", "radius", radius)
        # A record that comes or goes has no second value to move to: the kinds exclude each other.
        need(
            not (self.membership and (radius > 0 or self.label)),
            "adjacency",
            "either membership or replacement, not both",
            "membership",
            True,
        )
        need(
            isinstance(count, int) and not isinstance(count, bool) and count >= 1,
            "adjacency",
            "an integer >= 1",
            "records",
            count,
        )
        self.privacy_unit.validate()

    @property
    def privacy_unit(self) -> "Unit":
        """What neighbours differ in, which answers whatever depends on it."""
        return _UNITS[self.unit](self)

    def of_persons(self, records: int) -> "Adjacency":
        """Return the relation whose unit is a person, of whom at most `records` records are used.

        Raises:
            ParameterError: `records` is below 1, or the relation is neither add/remove nor
                replace-one.
        """
        return attrs.evolve(self, unit="person", records=records)

    def of_rows(self) -> "Adjacency":
        """Return the relation between tables from which a row may be left out by its own cells.

        Raises:
            ParameterError: it is neither add/remove nor replace-one: of others nothing is proved.
        """
        need(
            self in (ADD_REMOVE, REPLACE_ONE, REPLACE_ROW),
            "data.domain.only",
            "add_remove or replace_one: which rows are left out may change with a row",
            "adjacency",
            str(self),
            "adjacency",
        )
        return self if self.membership else REPLACE_ROW

    @property
    def of_person(self) -> bool:
        """Whether a person is the unit."""
        return self.unit == "person"

    def __le__(self, other: "Adjacency") -> bool:
        """Return whether every pair of neighbours under `self` are neighbours under `other`."""
        return (self == REPLACE_ONE and other == REPLACE_ROW) or (
            # A claim about five records of a person covers three, and never another unit.
            self.unit == other.unit
            and self.records <= other.records
            and self.membership == other.membership
            and self.feature_radius <= other.feature_radius
            and self.label <= other.label
        )

    def covers(self, relation: "Adjacency") -> bool:
        """Return whether a claim proved for this adjacency holds for `relation`."""
        return relation <= self

    def require_covered_by(self, claim: "Adjacency", owner: str) -> None:
        """Raise `AdjacencyError` unless a claim of `owner` for `claim` covers this adjacency."""
        if not claim.covers(self):
            raise AdjacencyError(
                f"{owner} holds for adjacency {claim}, which does not cover {self}"
            )

    @property
    def replaces(self) -> bool:
        """Whether neighbours have equally many records, so that their number may be public."""
        return not (self.membership or self.varies)

    @property
    def varies(self) -> bool:
        """Whether a unit has any number of records up to `records`, none of them too."""
        return self.unit in ("person", "row")

    def require_presence(self, owner: str, requirement: str) -> None:
        """Raise `ParameterError` of `owner` unless neighbours are with the unit, and without it."""
        need(self.membership, owner, requirement, "adjacency", str(self))

    def __str__(self) -> str:
        return self.privacy_unit.words()[0]

    def describe(self) -> str:
        """Return the relation as a clause: "datasets that differ ..."."""
        return self.privacy_unit.words()[1]


@attrs.frozen
class Unit(ABC):
    """What neighbours under a relation differ in: a record, a person or a place."""

    count_secret: ClassVar[str] = "the exact count is what it protects"
    """Why the number of records is private where the unit may come or go, as a clause."""

    holdout_secret: ClassVar[str] = "add_remove hides it"
    """Why then the number of those that are in the hold-out is private."""

    relation: Adjacency

    def validate(self) -> None:
        """Raise `ParameterError` where the relation can be about no such unit."""
        requirement = f"1 where a {self.relation.unit} is the unit"
        need(self.relation.records == 1, "adjacency", requirement, "records", self.relation.records)

    @abstractmethod
    def words(self) -> tuple[str, str]:
        """Return the relation's name, and how datasets differ under it, as a clause."""


class Record(Unit):
    """One record, wherever it is."""

    def words(self) -> tuple[str, str]:
        relation, radius = self.relation, self.relation.feature_radius
        if relation.membership:
            return "add_remove", "in the presence of one record"
        if relation == REPLACE_ONE:
            return "replace_one", "in one record, replaced by any other in the domain"
        name = f"replace_features(radius={radius!r}, label={'free' if relation.label else 'fixed'})"
        if radius == 0:
            return (
                "replace_label" if relation.label else name,
                "in the label of one record; features are not protected",
            )
        extent = (
            "to any others in the domain"
            if math.isinf(radius)
            else f"by at most {radius!r} in encoded l2 distance"
        )
        label = "and label" if relation.label else "only; labels are not protected"
        return name, f"in one record's features (moved {extent}) {label}"


class Person(Unit):
    """All used records of one person, `relation.records` at most.

    Both neighbours may have any number of them, so that no count of records is public.
    """

    count_secret: ClassVar[str] = "how many records a person has is protected"
    holdout_secret: ClassVar[str] = count_secret

    def validate(self) -> None:
        # A person is protected in full. With fixed labels or a radius there is no such relation.
        relation = self.relation
        need(
            relation.membership or (math.isinf(relation.feature_radius) and relation.label),
            "adjacency",
            "add_remove or replace_one for persons",
            "unit",
            "person",
        )

    def words(self) -> tuple[str, str]:
        records = self.relation.records
        name, change = (
            ("add_remove", "present or absent")
            if self.relation.membership
            else ("replace_one", "replaced by any others of a person in the domain")
        )
        return (
            f"{name} of a person ({records} records at most)",
            f"in all records of one person, of whom at most {records} are used, {change}",
        )


class Row(Unit):
    """One row, replaced by any other: before and after, it may be one that is left out."""

    holdout_secret: ClassVar[str] = "how many rows are left out is protected"

    def validate(self) -> None:
        need(
            attrs.astuple(self.relation) == (False, math.inf, True, "row", 1),
            "adjacency",
            "replace_one for rows, one at a time",
            "unit",
            "row",
        )

    def words(self) -> tuple[str, str]:
        return (
            "replace_row",
            "in one row, replaced by any other; either may be left out, so that a record is "
            "replaced, comes or goes",
        )


class Place(Unit):
    """One place of a list, whose record is there or blank."""

    def validate(self) -> None:
        super().validate()
        need(self.relation.membership, "adjacency", "membership for places", "unit", "place")

    def words(self) -> tuple[str, str]:
        return (
            "blank_one",
            "in one place, which holds a record or the blank one, that contributes nothing",
        )


_UNITS: dict[str, type[Unit]] = {
    "record": Record,
    "person": Person,
    "row": Row,
    "place": Place,
}
ADD_REMOVE = Adjacency(membership=True, feature_radius=0.0, label=False)
REPLACE_ONE = Adjacency(membership=False, feature_radius=math.inf, label=True)
REPLACE_ROW = Adjacency(membership=False, feature_radius=math.inf, label=True, unit="row")
BLANK_ONE = Adjacency(membership=True, feature_radius=0.0, label=False, unit="place")
REPLACE_LABEL = Adjacency(membership=False, feature_radius=0.0, label=True)

UNFRAMED = (ADD_REMOVE, REPLACE_ONE, REPLACE_ROW)
"""Relations that mean the same in every declared domain."""

RELATIONS = {str(relation): relation for relation in (*UNFRAMED, REPLACE_LABEL)}
"""Relations that a name says all of, as specs and lists of events write it."""


def replace_features(radius: float, *, label: bool) -> Adjacency:
    """Return the relation that moves one record's encoded features by at most `radius`.

    If `label`, the record's label may change too.
    """
    return Adjacency(membership=False, feature_radius=float(radius), label=label)
