r"""Sampling: which records one ask sees, drawn by the runtime from coins that no learner can name.

What a claim averages over is drawn afresh for every ask, independent of the records:

* `Poisson(probability)`: every record with that probability, for add/remove.
* `WithoutReplacement(size, records)`: a subset of fixed size, for replacement relations.
* `Order(kind, steps)`: all records, and a sequence of row numbers in `records.order`, for
  replacement relations. The price of an order is in the sensitivity: a worst case over orders, or a
  `HitLaw`.
* `Cyclic(groups, probability)`: every record draws a group once, and is seen in every so-manieth
  ask at most. A record then costs what those asks cost, and noise may span the others
  (`SumQuery.bands`).

The first two make the cost of an ask smaller, by the events of the same names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_field, one_of, positive_integer, probability
from dpcore.errors import ContractError, need
from dpcore.events.base import Event
from dpcore.randomness import Stream, Words
from dpcore.records.bounding import PersonCodes
from dpcore.records.records import Records
from dpcore.sampling.selection import Coins, OfGroup, OfPersons, Selection, Smallest

_NEARLY_TWICE = 1.9


class Sampling(ABC):
    """How the records of one ask are drawn. Frozen and public; the draw itself is secret."""

    by_person: ClassVar[bool] = False
    """Whether `draw` and `chosen_persons` take all records of a person or none, where a person is
    the unit. No claim about persons is made for a sampling that does not."""

    replaces_in_sums: ClassVar[bool] = False
    """Whether `amplified_sum` serves replacement relations that `refusal` is about."""

    source: ClassVar[str] = ""
    """What its amplification rests on; empty where nothing is amplified."""

    @abstractmethod
    def refusal(self, adjacency: Adjacency) -> str:
        """Why no claim can be made for a relation, or empty."""

    @abstractmethod
    def amplified(self, event: Event) -> Event:
        """What an ask costs whose mechanism alone costs `event`."""

    def amplified_sum(self, event: Event, absent: Event) -> Event:
        """What an ask for a sum costs, if `absent` is the cost of a record's not being seen."""
        return self.amplified(event)

    @abstractmethod
    def draw(self, records: Records, stream: Stream) -> Records:
        """PRIVATE: what the private function sees."""

    def charged(self, asks: int) -> int:
        """In how many of so many asks a record takes part at most."""
        return asks

    def at_ask(self, number: int, groups: Stream) -> Sampling | Turn:
        """PRIVATE: what draws ask `number`, counted from 1.

        Args:
            groups: The query's own stream for what is drawn once, apart from every ask's.
        """
        return self

    def chosen(self, words: Words, places: int, records: int, among: Selection) -> Selection:
        """PRIVATE: the same law for records that stay where they are, by words of their places.

        Args:
            places: Of the source. records: How many of them are in `among`.

        Raises:
            ContractError: it needs all records in one place.
        """
        raise ContractError(f"{type(self).__name__} needs all records in one memory")

    def chosen_persons(self, words: Words, used: PersonCodes) -> Selection:
        """PRIVATE: the same law of persons.

        Raises:
            ContractError: it draws no persons.
        """
        raise ContractError(f"{type(self).__name__} draws no persons")

    @abstractmethod
    def attacked(self, records: Records, changed: int, stream: Stream) -> Records:
        """A possible draw in which row `changed` takes part: for attacks, on made-up records."""


@attrs.frozen(kw_only=True)
class Poisson(Sampling):
    """Every record independently with `probability`, in (0, 1].

    For add/remove, and for replacements where the statistic is a sum that the core adds: then what
    a record moves by not being in the sample is known too.

    Where a person is the unit, all used records of a person together, independently of the others:
    by records, a person with k of them would be hit up to k times.

    Source: see `dpcore.events.poisson` and `dpcore.events.poisson_replaced`.
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
        """Empty for add/remove; for replacements, that Poisson sampling is not for them."""
        return "" if adjacency.membership else "Poisson sampling is for add_remove"

    def amplified(self, event: Event) -> Event:
        """The event of one Poisson sample of the records."""
        # Amplified events are imported where something is sampled.
        from dpcore.events.poisson import PoissonSampledEvent

        return PoissonSampledEvent(event=event, sampling_probability=self.probability)

    def amplified_sum(self, event: Event, absent: Event) -> Event:
        """Under replacements the record is seen, or its replacement is, or neither.

        A Gaussian that is about twice as far for a replacement is taken as exactly twice as far, if
        need be with more loss: then the curve is known exactly.
        """
        if not self.refusal(event.adjacency):
            return self.amplified(event)
        from dpcore.events.gaussian import GaussianEvent
        from dpcore.events.poisson_replaced import PoissonReplacedEvent

        full_mu, half_mu = event.gaussian_mu(), absent.gaussian_mu()
        if full_mu is not None and half_mu is not None and full_mu > _NEARLY_TWICE * half_mu:
            # The pair becomes (2 mu, mu) with both parts rounded up: never less loss.
            half_mu = max(half_mu, full_mu / 2)
            event = GaussianEvent(mu=2 * half_mu, adjacency=event.adjacency)
            absent = GaussianEvent(mu=half_mu, adjacency=event.adjacency)
        return PoissonReplacedEvent(
            event=event, absent=absent, sampling_probability=self.probability
        )

    def draw(self, records: Records, stream: Stream) -> Records:
        """A subset, in the records' order; it may be empty.

        A record is taken with `probability` rounded down to 63 bits, never with more.
        """
        below = np.uint64(self._below)
        if (owners := records.persons) is None:
            in_sample = stream.words(len(records)) >> np.uint64(1) < below
        else:
            # One coin a person, which all of that person's records share.
            persons = int(owners.max(initial=-1)) + 1
            in_sample = (stream.words(persons) >> np.uint64(1) < below)[owners]
        return records.take(np.flatnonzero(in_sample))

    def chosen(self, words: Words, places: int, records: int, among: Selection) -> Selection:
        """A coin for each place."""
        return Coins(words, self._below)

    def chosen_persons(self, words: Words, used: PersonCodes) -> Selection:
        """A coin for each person."""
        # Person i has word i of the stream, wherever the person's records stand.
        return OfPersons(used, Coins(words, self._below).kept(0, used.persons))

    @property
    def _below(self) -> int:
        return int(self.probability * 2.0**63)

    def attacked(self, records: Records, changed: int, stream: Stream) -> Records:
        """All of them: every subset is possible, and the attack tries datasets of any size."""
        return records


@attrs.frozen(kw_only=True)
class Cyclic(Sampling):
    r"""Every record draws one of `groups` once; ask t sees those of group t modulo `groups`, each
    with `probability`, in (0, 1].

    So a record takes part once in `groups` asks at most, in :math:`\lceil T/groups\rceil` of T in
    all, and those alone are charged. With one group this is Poisson sampling, with a probability of
    1 shuffled passes over the records.

    Groups are drawn by coins of the records' own, apart from those of every ask, and never
    published: where n is private, their sizes are too. Where a person is the unit, all records of a
    person share group and coin.

    Source: theorem T16 (docs/theorems.md).
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
        """Empty for add/remove; for replacements, that only sums are for them."""
        return "" if adjacency.membership else "Cyclic sampling is for add_remove"

    def amplified(self, event: Event) -> Event:
        """The event of the Poisson sample of a group; the event itself where all of it is taken."""
        return event if self.probability == 1 else self._of_group.amplified(event)

    def amplified_sum(self, event: Event, absent: Event) -> Event:
        """As a Poisson sample: a replaced record draws the group and the coins of its place."""
        return event if self.probability == 1 else self._of_group.amplified_sum(event, absent)

    def charged(self, asks: int) -> int:
        """Those of one group's turns."""
        return -(-asks // self.groups)

    def at_ask(self, number: int, groups: Stream) -> Turn:
        """PRIVATE: the turn of one group."""
        return Turn(scheme=self, turn=number % self.groups, groups=groups.by_place)

    def draw(self, records: Records, stream: Stream) -> Records:
        """Refused with a `ContractError`: without its turn a record might be seen too often."""
        raise ContractError("Cyclic is drawn by turns: take at_ask(number, groups)")

    @property
    def _of_group(self) -> Poisson:
        return Poisson(probability=self.probability)

    def attacked(self, records: Records, changed: int, stream: Stream) -> Records:
        """All of them: all may have drawn one group."""
        return records


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Turn:
    """PRIVATE: which records one ask of a `Cyclic` sees.

    Args:
        turn: Of which group. groups: Words that say who drew it, the same at every ask.
    """

    scheme: Cyclic
    turn: int
    groups: Words

    def draw(self, records: Records, stream: Stream) -> Records:
        """The group's records that are taken, in their order; there may be none."""
        owners = records.persons
        units = len(records) if owners is None else int(owners.max(initial=-1)) + 1
        in_sample = self._taking(stream.by_place).kept(0, units)
        return records.take(np.flatnonzero(in_sample if owners is None else in_sample[owners]))

    def chosen(self, words: Words, places: int, records: int, among: Selection) -> Selection:
        """The same, by the words of each place."""
        return self._taking(words)

    def chosen_persons(self, words: Words, used: PersonCodes) -> Selection:
        """The same, by the words of each person."""
        return OfPersons(used, self._taking(words).kept(0, used.persons))

    def _taking(self, words: Words) -> Selection:
        coins = Coins(words, int(self.scheme.probability * 2.0**63))
        # Two words a record: one that groups and coins shared would make who is seen depend on
        # who is in the group.
        return OfGroup(
            selection=coins, words=self.groups, groups=self.scheme.groups, turn=self.turn
        )


@attrs.frozen(kw_only=True)
class WithoutReplacement(Sampling):
    """A uniform subset of `size` of exactly `records` records. Replacement relations only.

    Args:
        size: In [1, records]. records: The public number of records.

    Source: see `dpcore.events.without_replacement`.
    """

    source: ClassVar[str] = (
        "secret subsets of fixed size: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647"
    )

    size: int = attrs.field(validator=positive_integer)
    records: int = attrs.field(validator=positive_integer)

    def __attrs_post_init__(self) -> None:
        need_field(self.size <= self.records, self, "size", f"a size of at most {self.records}")

    def refusal(self, adjacency: Adjacency) -> str:
        """Empty for replacements; for add/remove, that the number must be public."""
        return "" if adjacency.replaces else "a subset of fixed size needs a public number"

    def amplified(self, event: Event) -> Event:
        """The event of one uniform subset of `size` of the `records` records."""
        from dpcore.events.without_replacement import WithoutReplacementEvent

        return WithoutReplacementEvent(event=event, size=self.size, records=self.records)

    def draw(self, records: Records, stream: Stream) -> Records:
        """A subset, in a random order.

        Raises:
            ContractError: there are not `records` records.
        """
        # The claim is about subsets of exactly this many records.
        _require(len(records), self.records)
        return records.take(stream.subset(len(records), self.size))

    def chosen(self, words: Words, places: int, records: int, among: Selection) -> Selection:
        """The places with the smallest words.

        Raises:
            ContractError: there are not `records` records.
        """
        _require(records, self.records)
        return Smallest.of(words, self.size, places, among)

    def attacked(self, records: Records, changed: int, stream: Stream) -> Records:
        """The changed record stands at a random place of the subset."""
        # An attack looks at draws that hold the changed record: others tell it nothing.
        order = _with(stream.permutation(len(records)), changed, self.size, stream)
        return records.take(order[: self.size])


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
        """For add/remove: where a record stands depends on how many there are."""
        return "" if adjacency.replaces else "an order of rows needs a public number of records"

    def amplified(self, event: Event) -> Event:
        """The event itself: the order is priced in the sensitivity."""
        return event

    def draw(self, records: Records, stream: Stream) -> Records:
        """All records with `order`.

        Raises:
            ContractError: there are no records.
        """
        return attrs.evolve(records, order=self.rows(len(records), stream))

    def rows(self, count: int, stream: Stream) -> NDArray[np.intp]:
        """Row numbers below `count`, shape (steps,).

        Raises:
            ContractError: `count` is 0.
        """
        need(count >= 1, ContractError, "an order of rows needs at least one record")
        if self.kind == "cyclic":
            return np.arange(self.steps, dtype=np.intp) % count
        if self.kind == "with_replacement":
            return _uniform(self.steps, count, stream)
        # Each pass has its own permutation, as the claims about shuffling require.
        passes = -(-self.steps // count)
        return np.concatenate([stream.permutation(count) for _ in range(passes)])[: self.steps]

    def attacked(self, records: Records, changed: int, stream: Stream) -> Records:
        """The changed record is used at least once, in a with-replacement order maybe often."""
        rows = self.rows(len(records), stream)
        # A pass that is cut short may miss the changed record, which is moved to a used place.
        if self.kind == "shuffled" and self.steps < len(records):
            rows = _with(stream.permutation(len(records)), changed, self.steps, stream)
            rows = rows[: self.steps]
        elif self.kind == "with_replacement":
            # One to four hits, so that attacks also see a record that is used often.
            times = 1 + int(_uniform(1, 4, stream)[0])
            rows[_uniform(times, self.steps, stream)] = changed
        return attrs.evolve(records, order=rows)


def _require(records: int, count: int) -> None:
    need(
        records == count,
        ContractError,
        f"a sample of {count} records was planned, there are {records}",
    )


def _uniform(size: int, count: int, stream: Stream) -> NDArray[np.intp]:
    """Exactly uniform numbers below `count`: words at or above its largest multiple are redrawn."""
    # Words beyond the last full multiple of `count` would favour small numbers.
    largest = np.uint64((1 << 64) // count * count - 1)
    accepted_words: list[NDArray[np.uint64]] = []
    count_so_far = 0
    while count_so_far < size:
        words = stream.words(size - count_so_far)
        words = words[words <= largest]
        accepted_words.append(words)
        count_so_far += words.size
    return (np.concatenate(accepted_words) % np.uint64(count)).astype(np.intp)


def _with(order: NDArray[np.intp], changed: int, size: int, stream: Stream) -> NDArray[np.intp]:
    """A permutation with `changed` moved to a random one of the first `size` places."""
    place = int(_uniform(1, size, stream)[0])
    position = int(np.flatnonzero(order == changed)[0])
    order = order.copy()
    # A swap leaves the order a permutation.
    order[[place, position]] = order[[position, place]]
    return order
