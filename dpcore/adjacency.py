"""Adjacency: which two datasets are neighbours. Part of every guarantee, never implied.

An adjacency is a small partially ordered value: may a record come or go, how far may the encoded
features of one record move, may its label change. A claim proved for one relation holds for every
smaller one; anything else is an error. It lives after projection into the domain: a feature radius
is an l2 distance in encoded coordinates, and datasets are multisets of records.

Its unit is a record, or a person with all their records, of which at most `records` are used
(`dpcore.records.bounding`). Or it is a place: a list has a known number of places, each of which
holds a record or the blank one, which contributes nothing. No claim about one unit covers another.
"""

import math
from typing import Literal

import attrs

from dpcore.errors import AdjacencyError, ParameterError


@attrs.frozen
class Adjacency:
    """Neighbours differ in one record: its presence, its features (within a radius), its label.

    Args:
        membership: One record may be added or removed.
        feature_radius: How far one record's encoded features may move in l2; 0 fixes them,
            `math.inf` lets them move anywhere in the domain.
        label: The label of that same record may change to any other in the domain.
        unit: Whether all this is said of one record, of all used records of one person at once, or
            of one place, whose record is there or blank.
        records: How many records of one person are used at most; 1 where the unit is a record.
    """

    membership: bool
    feature_radius: float
    label: bool
    unit: Literal["record", "person", "place"] = "record"
    records: int = 1

    def __attrs_post_init__(self) -> None:
        if math.isnan(self.feature_radius) or self.feature_radius < 0:
            raise ParameterError(
                "replace_features", "a radius >= 0 (or inf)", "radius", self.feature_radius
            )
        # A record that comes or goes has no second value to move to: the kinds exclude each other.
        if self.membership and (self.feature_radius > 0 or self.label):
            raise ParameterError(
                "adjacency", "either membership or replacement, not both", "membership", True
            )
        if isinstance(self.records, bool) or not isinstance(self.records, int) or self.records < 1:
            raise ParameterError("adjacency", "an integer >= 1", "records", self.records)
        if self.unit != "person" and self.records != 1:
            requirement = f"1 where a {self.unit} is the unit"
            raise ParameterError("adjacency", requirement, "records", self.records)
        # A person is protected in full. With fixed labels or a radius there is no such relation.
        is_full = self.membership or (math.isinf(self.feature_radius) and self.label)
        if self.unit == "person" and not is_full:
            raise ParameterError(
                "adjacency", "add_remove or replace_one for persons", "unit", self.unit
            )
        if self.unit == "place" and not self.membership:
            raise ParameterError("adjacency", "membership for places", "unit", self.unit)

    def of_persons(self, records: int) -> "Adjacency":
        """The relation whose unit is a person, of whom at most `records` records are used.

        Raises:
            ParameterError: `records` is below 1, or the relation is neither add/remove nor
                replace-one.
        """
        return attrs.evolve(self, unit="person", records=records)

    @property
    def of_person(self) -> bool:
        """Whether a person is the unit."""
        return self.unit == "person"

    def __le__(self, other: "Adjacency") -> bool:
        """Whether every pair of neighbours under `self` are neighbours under `other`."""
        return (
            # A claim about five records of a person covers three, and never another unit.
            self.unit == other.unit
            and self.records <= other.records
            and self.membership == other.membership
            and self.feature_radius <= other.feature_radius
            and self.label <= other.label
        )

    def covers(self, relation: "Adjacency") -> bool:
        """Whether a claim proved for this adjacency holds for `relation`."""
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
        return not (self.membership or self.of_person)

    def __str__(self) -> str:
        if self.of_person:
            plain = "add_remove" if self.membership else "replace_one"
            return f"{plain} of a person ({self.records} records at most)"
        if self.unit == "place":
            return "blank_one"
        if self.membership:
            return "add_remove"
        if self == REPLACE_ONE:
            return "replace_one"
        if self.feature_radius == 0 and self.label:
            return "replace_label"
        label = "free" if self.label else "fixed"
        return f"replace_features(radius={self.feature_radius!r}, label={label})"

    def describe(self) -> str:
        """The relation as a clause: "datasets that differ ..."."""
        if self.of_person:
            clause = f"of one person, of whom at most {self.records} are used"
            if self.membership:
                return f"in all records {clause}, present or absent"
            return f"in all records {clause}, replaced by any others of a person in the domain"
        if self.unit == "place":
            return "in one place, which holds a record or the blank one, that contributes nothing"
        if self.membership:
            return "in the presence of one record"
        if self == REPLACE_ONE:
            return "in one record, replaced by any other in the domain"
        if self.feature_radius == 0:
            return "in the label of one record; features are not protected"
        extent = (
            "to any others in the domain"
            if math.isinf(self.feature_radius)
            else f"by at most {self.feature_radius!r} in encoded l2 distance"
        )
        label = "and label" if self.label else "only; labels are not protected"
        return f"in one record's features (moved {extent}) {label}"


ADD_REMOVE = Adjacency(membership=True, feature_radius=0.0, label=False)
REPLACE_ONE = Adjacency(membership=False, feature_radius=math.inf, label=True)
BLANK_ONE = Adjacency(membership=True, feature_radius=0.0, label=False, unit="place")
REPLACE_LABEL = Adjacency(membership=False, feature_radius=0.0, label=True)


def replace_features(radius: float, *, label: bool) -> Adjacency:
    """One record's encoded features move by at most `radius`; its label too, if `label`."""
    return Adjacency(membership=False, feature_radius=float(radius), label=label)
