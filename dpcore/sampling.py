r"""`sampling`: which records one query sees, drawn by randomness that no learner can name.

What a claim averages over is drawn afresh for every query, independent of the records:

* `Poisson(probability)`: every record with that probability, for add/remove.
* `WithoutReplacement(size, records)`: a subset of fixed size, for replacement relations.
* `Order(kind, steps)`: all records, and a sequence of row numbers in `records.order`, for
  replacement relations. The price of an order is in the sensitivity: a worst case over orders, or a
  `HitDistribution`.
* `Cyclic(groups, probability)`: every record draws a group once, and is seen in every so-manieth
  ask at most. A record then costs what those queries cost, and noise may span the others
  (`SumQuery.bands`).

The first two make the cost of a query smaller, by the events of the same names
(`dpcore.claims.sampling`). How each of them draws is said in `dpcore.private.sampling`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import attrs

from dpcore.adjacency import Adjacency
from dpcore.checks import need_field, one_of, positive_integer, probability


class Sampling(ABC):
    """How the records of one ask are drawn. Frozen and public; the draw itself is secret.

    A scheme of one's own registers its claim with `dpcore.claims.sampling.amplify`, and its draws
    with `draw` and `draw_with` of `dpcore.private.sampling`; without them its asks are refused.
    """

    by_person: ClassVar[bool] = False
    """Whether `draw` and `select_persons` take all records of a person or none, where a person is
    the unit. No claim about persons is made for a sampling that does not."""

    replaces_in_sums: ClassVar[bool] = False
    """Whether `amplify_sum` serves replacement relations that `refusal` is about."""

    source: ClassVar[str] = ""
    """What its amplification rests on; empty where nothing is amplified."""

    @abstractmethod
    def refusal(self, adjacency: Adjacency) -> str:
        """Explain why no claim can be made for a relation; empty if one can."""

    def charged(self, query_count: int) -> int:
        """Bound in how many of so many asks a record takes part."""
        return query_count


@attrs.frozen(kw_only=True)
class Poisson(Sampling):
    """Every record independently with `probability`, in (0, 1].

    For add/remove, and for replacements where the statistic is a sum that the core adds: then what
    a record moves by not being in the sample is known too.

    Where a person is the unit, all used records of a person together, independently of the others:
    by records, a person with k of them would be hit up to k times.

    Source: see `dpcore.claims.events.poisson` and `dpcore.claims.events.poisson_replaced`.
    """

    by_person: ClassVar[bool] = True
    replaces_in_sums: ClassVar[bool] = True
    source: ClassVar[str] = (
        "secret Poisson samples: Zhu, Dong & Wang (2022), arXiv:2106.08567v4, Theorem 11; for "
        "replacements Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 2"
    )

    probability: float = attrs.field(validator=probability)

    def __attrs_post_init__(self) -> None:
        need_field(self.probability > 0, self, "probability", "a probability in (0, 1]")

    def refusal(self, adjacency: Adjacency) -> str:
        """Return nothing for add/remove; for replacements, that `Poisson` does not cover them."""
        return "" if adjacency.membership else "Poisson sampling is for add_remove"


@attrs.frozen(kw_only=True)
class Cyclic(Sampling):
    r"""Every record draws one of `groups` once; ask t sees those of group t modulo `groups`, each
    with `probability`, in (0, 1].

    So a record takes part once in `groups` asks at most, in :math:`\lceil T/groups\rceil` of T in
    all, and those by itself are charged. With one group this is Poisson sampling, with a
    probability of 1 shuffled passes over the records.

    Groups are drawn by randomness of the records' own, apart from those of every query, and never
    published: where n is private, their sizes are too. Where a person is the unit, all records of a
    person share group and coin.

    Source: theorem T16 (docs/theorems-noise.md).
    """

    by_person: ClassVar[bool] = True
    replaces_in_sums: ClassVar[bool] = True
    source: ClassVar[str] = (
        "secret groups that take turns: Choquette-Choo et al. (2023), arXiv:2306.08153, and T16"
    )

    groups: int = attrs.field(validator=positive_integer)
    probability: float = attrs.field(default=1.0, validator=probability)

    def __attrs_post_init__(self) -> None:
        need_field(self.probability > 0, self, "probability", "a probability in (0, 1]")

    def refusal(self, adjacency: Adjacency) -> str:
        """Return nothing for add/remove; for replacements, that `Cyclic` does not cover them."""
        return "" if adjacency.membership else "Cyclic sampling is for add_remove"

    def charged(self, query_count: int) -> int:
        """Count the turns of one group."""
        return -(-query_count // self.groups)


@attrs.frozen(kw_only=True)
class WithoutReplacement(Sampling):
    """A uniform subset of `size` of exactly `records` records. Replacement relations only.

    Args:
        size: In [1, records]. records: The public number of records.

    Source: see `dpcore.claims.events.without_replacement`.
    """

    source: ClassVar[str] = (
        "secret subsets of fixed size: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647"
    )

    size: int = attrs.field(validator=positive_integer)
    records: int = attrs.field(validator=positive_integer)

    def __attrs_post_init__(self) -> None:
        need_field(self.size <= self.records, self, "size", f"a size of at most {self.records}")

    def refusal(self, adjacency: Adjacency) -> str:
        """Return nothing for replacements; for add/remove, that the number must be public."""
        return "" if adjacency.replaces else "a subset of fixed size needs a public number"


@attrs.frozen(kw_only=True)
class Order(Sampling):
    """All records, and `steps` row numbers in the order in which they are to be used.

    Args:
        kind: `with_replacement`, independent uniform rows; `shuffled`, a fresh uniform permutation
            for every pass; `cyclic`, the rows as they stand, over and over.
        steps: Length of the sequence; the last pass may be cut short.
    """

    kind: Literal["with_replacement", "shuffled", "cyclic"] = attrs.field(
        validator=one_of("with_replacement", "shuffled", "cyclic")
    )
    steps: int = attrs.field(validator=positive_integer)

    def refusal(self, adjacency: Adjacency) -> str:
        """Return nothing for replacements; for add/remove, that the record count must be public."""
        return "" if adjacency.replaces else "an order of rows needs a public number of records"
