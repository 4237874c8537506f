"""Which two datasets are neighbours, by its fields and by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import fmpq

from dpcore_verify.balls import need
from dpcore_verify.reading import count, hexadecimal, number


@dataclass(frozen=True)
class Relation:
    """Neighbours differ in one record, or in all used records of one person.

    Args:
        membership: Whether a record comes or goes; else one is replaced.
        radius: How far features may move; None without a limit.
        label: Whether the label may change.
        unit: `record`, `person` or `row`.
        records: Of a unit, at most.
    """

    membership: bool
    radius: fmpq | None
    label: bool
    unit: str = "record"
    records: int = 1

    def name(self) -> str:
        """Return the name under which a guarantee states it."""
        if self.membership:
            plain = "add_remove"
        elif self.radius is None and self.label:
            plain = "replace_one"
        elif self.radius == 0 and self.label:
            plain = "replace_label"
        else:
            radius = "inf" if self.radius is None else repr(int(self.radius.p) / int(self.radius.q))
            plain = f"replace_features(radius={radius}, label={'free' if self.label else 'fixed'})"
        if self.unit == "person":
            return f"{plain} of a person ({self.records} records at most)"
        return plain if self.unit == "record" else f"replace_{self.unit}"

    def covers(self, name: str) -> bool:
        """Whether a claim about this relation holds for the one that goes by a name."""
        replaces = name == "replace_one" or name.startswith(("replace_label", "replace_features("))
        return name == self.name() or (
            " of " not in name and replaces and self.name() in ("replace_one", "replace_row")
        )


def locked(bound: Any) -> Relation:
    """Return the relation that an entry of a lock of format 3 states among its fields."""
    need(isinstance(bound, dict), "a bound is no object")
    radius = bound.get("feature_radius")
    unit = next((u for u in ("persons", "rows") if u in bound), "")
    return _checked(
        Relation(
            bound.get("membership"),  # type: ignore[arg-type]
            None if radius is None else number(radius),
            bound.get("label"),  # type: ignore[arg-type]
            unit.removesuffix("s") or "record",
            count(bound[unit]) if unit else 1,
        )
    )


def claimed(data: Any) -> Relation:
    """Return the relation of claims of format 4; the unit stands there where it is no record."""
    need(isinstance(data, dict), "the relation is no object")
    plain = {"membership", "radius", "label"}
    need(data.keys() in (plain, plain | {"unit", "records"}), "the relation has other fields")
    radius = None if data["radius"] is None else hexadecimal(data["radius"])
    unit, records = data.get("unit", "record"), count(data.get("records", 1))
    need(unit in ("record", "person", "row"), "a unit that is not known")
    return _checked(Relation(data["membership"], radius, data["label"], unit, records))


def _checked(relation: Relation) -> Relation:
    flags = type(relation.membership) is type(relation.label) is bool
    need(flags and (relation.radius is None or relation.radius >= 0), "a relation that is none")
    moves = relation.radius is None or relation.radius > 0 or relation.label
    need(relation.membership != moves, "a relation of both presence and replacement, or of neither")
    return relation
