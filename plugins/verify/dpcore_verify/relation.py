"""Which two datasets are neighbours, by its fields and by its name."""

from dataclasses import dataclass

from flint import fmpq

from dpcore_verify.balls import need


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

    def __post_init__(self) -> None:
        moves = self.radius is None or self.radius > 0 or self.label
        need(type(self.membership) is type(self.label) is bool, "a relation without flags")
        need(self.membership != moves, "a relation of both presence and replacement, or of neither")
        need(self.unit in ("record", "person", "row"), "a unit that is not known")

    @property
    def name(self) -> str:
        """The name under which a guarantee states it."""
        radius = "inf" if self.radius is None else repr(int(self.radius.p) / int(self.radius.q))
        label = "free" if self.label else "fixed"
        plain = {
            (True, "0.0", "fixed"): "add_remove",
            (False, "inf", "free"): "replace_one",
            (False, "0.0", "free"): "replace_label",
        }.get((self.membership, radius, label), f"replace_features(radius={radius}, label={label})")
        if self.unit == "person":
            return f"{plain} of a person ({self.records} records at most)"
        return plain if self.unit == "record" else "replace_row"

    def covers(self, name: str) -> bool:
        """Return whether a claim about this relation holds for the one that goes by a name."""
        replaces = name.startswith(("replace_one", "replace_label", "replace_features("))
        is_of_record = replaces and " of " not in name
        return name == self.name or (is_of_record and self.name in ("replace_one", "replace_row"))
