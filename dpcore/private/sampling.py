"""`sampling`: draw what one query sees of the records, by secret words.

Of a table the draw is made at once (`draw`); of records that stay where they are the same law is a
selection of places (`select`) or of persons (`select_persons`).
"""

from collections.abc import Callable
from functools import singledispatch

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, need
from dpcore.private.bounding import PersonCodes
from dpcore.private.engines.selection import (
    EVERYTHING,
    BernoulliSelection,
    OfGroup,
    OfPersons,
    Selection,
    Smallest,
)
from dpcore.randomness import Stream, Words
from dpcore.records import Records
from dpcore.sampling import Cyclic, Order, Poisson, Sampling, WithoutReplacement


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Turn:
    """PRIVATE: which records one query of a `Cyclic` sees.

    Args:
        turn: Of which group. groups: Words that say who drew it, the same at every query.
    """

    scheme: Cyclic
    turn: int
    groups: Words

    def taking(self, words: Words) -> Selection:
        """Return the places, or persons, that are of the group and show heads."""
        # Two words a record: one that groups and randomness shared would make who is seen depend on
        # who is in the group.
        return OfGroup(
            selection=BernoulliSelection(words, _threshold(self.scheme)),
            words=self.groups,
            groups=self.scheme.groups,
            turn=self.turn,
        )


@singledispatch
def scheme_of_query(sampling: Sampling, number: int, groups: Stream) -> Sampling | Turn:
    """PRIVATE: return what draws ask `number`, counted from 1; the scheme itself by default.

    Args:
        groups: The query's own stream for what is drawn once, apart from every query's.
    """
    return sampling


@scheme_of_query.register
def _(sampling: Cyclic, number: int, groups: Stream) -> Turn:
    return Turn(scheme=sampling, turn=number % sampling.groups, groups=groups.by_place)


def require_draw(sampling: Sampling) -> None:
    """Refuse a scheme that says nowhere how it is drawn; needs no record.

    Raises:
        ContractError: its author registered neither `draw` nor `scheme_of_query`.
    """
    kind = type(sampling)
    by_turns = scheme_of_query.dispatch(kind) is not scheme_of_query.dispatch(object)
    if not by_turns and draw.dispatch(kind) is draw.dispatch(object):
        raise ContractError(f"{kind.__name__} registers no draw")


@singledispatch
def draw(sampling: Sampling | Turn, records: Records, stream: Stream) -> Records:
    """PRIVATE: draw what the private function sees.

    A `Poisson` sample and a `Turn` are in the records' order, and may be empty; a subset is in a
    random order; an `Order` has all records with `order`.

    Raises:
        ContractError: there are not as many records as planned, the scheme is drawn by turns, or
            its author registered no draw (`draw.register`).
    """
    raise ContractError(f"{type(sampling).__name__} registers no draw")


@draw.register
def _(sampling: Poisson, records: Records, stream: Stream) -> Records:
    # A record is taken with `probability` rounded down to 63 bits, never with more.
    below = np.uint64(_threshold(sampling))
    return _take(records, lambda units: stream.words(units) >> np.uint64(1) < below)


@draw.register
def _(sampling: Cyclic, records: Records, stream: Stream) -> Records:
    # Without its turn a record might be seen too often.
    raise ContractError("Cyclic is drawn by turns: take scheme_of_query(sampling, number, groups)")


@draw.register
def _(sampling: Turn, records: Records, stream: Stream) -> Records:
    return _take(records, lambda units: sampling.taking(stream.by_place).contains(0, units))


@draw.register
def _(sampling: WithoutReplacement, records: Records, stream: Stream) -> Records:
    # The claim is about subsets of exactly this many records.
    _require(len(records), sampling.records)
    return records.take(stream.subset(len(records), sampling.size))


@draw.register
def _(sampling: Order, records: Records, stream: Stream) -> Records:
    return attrs.evolve(records, order=draw_rows(sampling, len(records), stream))


@singledispatch
def select(
    sampling: Sampling | Turn, words: Words, places: int, records: int, among: Selection
) -> Selection:
    """PRIVATE: draw by the same law of records that stay where they are, by words of their places.

    Args:
        places: Of the source. records: How many of them are in `among`.

    Raises:
        ContractError: the scheme needs all records in one place, or another number of them.
    """
    raise ContractError(f"{type(sampling).__name__} needs all records in one memory")


@select.register
def _(sampling: Poisson, words: Words, places: int, records: int, among: Selection) -> Selection:
    return BernoulliSelection(words, _threshold(sampling))


@select.register
def _(sampling: Turn, words: Words, places: int, records: int, among: Selection) -> Selection:
    return sampling.taking(words)


@select.register
def _(
    sampling: WithoutReplacement, words: Words, places: int, records: int, among: Selection
) -> Selection:
    _require(records, sampling.records)
    return Smallest.of(words, sampling.size, places, among)


def select_persons(sampling: Sampling | Turn, words: Words, person_codes: PersonCodes) -> Selection:
    """PRIVATE: draw persons by the same law: person i has word i, wherever their records stand.

    Raises:
        ContractError: the scheme draws no persons.
    """
    if isinstance(sampling, Sampling) and not sampling.by_person:
        raise ContractError(f"{type(sampling).__name__} draws no persons")
    persons = select(sampling, words, person_codes.persons, person_codes.persons, EVERYTHING)
    return OfPersons(person_codes, persons.contains(0, person_codes.persons))


@singledispatch
def draw_with(sampling: Sampling, records: Records, changed: int, stream: Stream) -> Records:
    """Return a possible draw in which row `changed` takes part: for attacks, on synthetic records.

    Raises:
        ContractError: the scheme's author registered none (`draw_with.register`).
    """
    raise ContractError(f"{type(sampling).__name__} registers no draw with a record")


@draw_with.register(Poisson)
@draw_with.register(Cyclic)
def _(sampling: Sampling, records: Records, changed: int, stream: Stream) -> Records:
    # All of them: every subset is possible, all may have drawn one group, and the attack tries
    # datasets of any size.
    return records


@draw_with.register
def _(sampling: WithoutReplacement, records: Records, changed: int, stream: Stream) -> Records:
    # An attack looks at draws that hold the changed record: others say it nothing.
    order = _with(stream.permutation(len(records)), changed, sampling.size, stream)
    return records.take(order[: sampling.size])


@draw_with.register
def _(sampling: Order, records: Records, changed: int, stream: Stream) -> Records:
    rows = draw_rows(sampling, len(records), stream)
    # A pass that is cut short may miss the changed record, which is moved to a used place.
    if sampling.kind == "shuffled" and sampling.steps < len(records):
        rows = _with(stream.permutation(len(records)), changed, sampling.steps, stream)
        rows = rows[: sampling.steps]
    elif sampling.kind == "with_replacement":
        # One to four hits, so that attacks also see a record that is used often.
        times = 1 + int(_uniform(1, 4, stream)[0])
        rows[_uniform(times, sampling.steps, stream)] = changed
    return attrs.evolve(records, order=rows)


def draw_rows(sampling: Order, count: int, stream: Stream) -> NDArray[np.intp]:
    """PRIVATE: draw row numbers below `count`, shape (steps,).

    Raises:
        ContractError: `count` is 0.
    """
    need(count >= 1, ContractError, "an order of rows needs at least one record")
    if sampling.kind == "cyclic":
        return np.arange(sampling.steps, dtype=np.intp) % count
    if sampling.kind == "with_replacement":
        return _uniform(sampling.steps, count, stream)
    # Each pass has its own permutation, as the claims about shuffling require.
    passes = -(-sampling.steps // count)
    return np.concatenate([stream.permutation(count) for _ in range(passes)])[: sampling.steps]


def _take(records: Records, draw_units: Callable[[int], NDArray[np.bool_]]) -> Records:
    """Return the drawn records; if persons are the unit, one draw decides for all of a person's."""
    owners = records.persons
    units = len(records) if owners is None else int(owners.max(initial=-1)) + 1
    in_sample = draw_units(units)
    return records.take(np.flatnonzero(in_sample if owners is None else in_sample[owners]))


def _threshold(sampling: Poisson | Cyclic) -> int:
    return int(sampling.probability * 2.0**63)


def _require(records: int, count: int) -> None:
    need(
        records == count,
        ContractError,
        f"a sample of {count} records was planned, there are {records}",
    )


def _uniform(size: int, count: int, stream: Stream) -> NDArray[np.intp]:
    """Draw exactly uniform numbers below `count`; redraw words at or above its largest multiple."""
    # Words beyond the last full multiple of `count` would favour small numbers.
    largest = np.uint64((1 << 64) // count * count - 1)
    accepted_words: list[NDArray[np.uint64]] = []
    count_until_now = 0
    while count_until_now < size:
        words = stream.words(size - count_until_now)
        words = words[words <= largest]
        accepted_words.append(words)
        count_until_now += words.size
    return (np.concatenate(accepted_words) % np.uint64(count)).astype(np.intp)


def _with(order: NDArray[np.intp], changed: int, size: int, stream: Stream) -> NDArray[np.intp]:
    """Return a permutation with `changed` moved to a random one of the first `size` places."""
    place = int(_uniform(1, size, stream)[0])
    position = int(np.flatnonzero(order == changed)[0])
    order = order.copy()
    # A swap leaves the order a permutation.
    order[[place, position]] = order[[position, place]]
    return order
