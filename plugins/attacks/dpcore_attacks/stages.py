"""Stages: an examination in parts, ordered by declared work, and the choice among laws and parts.

What a stage costs is declared, and never measured: the same verdicts come in the same order on any
machine.
"""

import enum
from collections.abc import Collection, Iterator

import attrs

from dpcore_attacks.laws.law import Law, Verdict

TESTED = (
    "learners", "bounds", "mechanisms", "accountants", "features", "kernels", "events",
    "metrics", "sources", "engines", "commands",
)  # fmt: skip
"""Kinds of components that laws are about. Estimators are made of these; on evidence no guarantee
rests."""


class Work(enum.IntEnum):
    """What a stage repeats, from what costs least to what costs most."""

    DECLARATIONS = 0
    """Prices and claims: nothing is computed from records."""
    CALLS = 1
    """A few hundred calls of a component."""
    PAIRS = 2
    """Neighbouring pairs, each evaluated twice."""
    WIDE_DRAWS = 3
    """Few releases of many coordinates: up to millions of outputs for the price of some calls."""
    DRAWS = 4
    """Thousands of releases, one by one, and whole runs."""


@attrs.frozen(kw_only=True, eq=False)
class Stage:
    """A part of an examination.

    Args:
        work: What it repeats.
        laws: All that its verdicts may be on.
        verdicts: Judged one by one, when they are asked for.
    """

    work: Work
    laws: Collection[Law]
    verdicts: Iterator[Verdict]


@attrs.frozen(kw_only=True)
class Selection:
    """Which laws and components are examined: all of a kind that is empty.

    What is left out is not judged, and changes no other verdict: efforts and chances of an error
    are shared as if everything were examined.

    Args:
        laws: Ids of laws.
        components: Names of components, as specs write them.
    """

    laws: frozenset[str] = frozenset()
    components: frozenset[str] = frozenset()

    def has_law(self, law: Law) -> bool:
        """Return whether a law is examined."""
        return not self.laws or law.id in self.laws

    def has_component(self, name: str) -> bool:
        """Return whether a component is examined."""
        return not self.components or name in self.components
