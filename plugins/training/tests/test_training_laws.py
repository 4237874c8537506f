"""Laws of training that runs and the core keep, each seen to fail on a trainer that breaks it."""

import math
import zlib
from typing import ClassVar

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    Domain,
    Public,
    PublicRandomness,
    Records,
    SecretRandomness,
)
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.domain.columns import Range
from dpcore.encoding.tables import project_table
from dpcore.learners.bounds.sum import SumBound
from dpcore.learners.clipping import IntegerRows
from dpcore.randomness import Stream
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_models.solvers.banded import solved
from dpcore_training.bands import best_bands
from dpcore_training.dense import DenseNetwork
from dpcore_training.proposal import Proposer, declared

from builders import price_learner

RECORDS = 400


def facts():
    return Domain(columns={"a": Range(-1, 1)}, target="y", labels=Range(-1, 1), limit=RECORDS)


def table(count=RECORDS):
    places = np.arange(count) / RECORDS
    return {"a": places, "y": -places}


def planned(learner, epsilon=5.0):
    return price_learner(
        learner, domain=facts(), adjacency=ADD_REMOVE, mechanism=None, epsilon=epsilon
    )


# --- `training.proposer-lies`


@attrs.frozen(kw_only=True)
class Lies(DenseNetwork):
    """Proposes for the first record whatever `lie` makes of a row."""

    lie: object = None

    def contributions(self, query, block, public):
        rows = super().contributions(query, block, public).integers
        return IntegerRows(self.lie(rows, math.floor(math.ldexp(self.clip, -query.sum.unit))))


def with_first(row):
    def lie(rows, limit):
        return np.vstack([np.array(row(limit), dtype=np.int32), rows[1:]])

    return lie


LIES = {
    "twice as long": with_first(lambda limit: [2 * limit, 0]),
    "one unit too long": with_first(lambda limit: [limit, 1]),
    "the least integer": with_first(lambda limit: [-(2**31), 0]),
    "squares that wrap around": with_first(lambda limit: [2**31 - 1, 1]),
}


def total(learner, records):
    public = Public(domain=facts(), randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    planned_query = query.with_args({"weights": np.array([0.3, -0.2])})
    return learner.total_of(planned_query, records, public).integers()


def unchecked(learner, records):
    """What a trainer adds that believes its clip."""
    public = Public(domain=facts(), randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    planned_query = query.with_args({"weights": np.array([0.3, -0.2])})
    return learner.contributions(planned_query, records, public).integers.sum(
        axis=0, dtype=np.int64
    )


@pytest.mark.parametrize("name", LIES)
def test_a_row_that_is_too_long_counts_as_zeros_and_the_others_as_they_are(name):
    records = project_table(facts(), table(9))
    rest = total(DenseNetwork(), records.take(np.arange(1, 9)))
    learner = Lies(lie=LIES[name])
    assert [*total(learner, records)] == [*rest]
    assert [*unchecked(learner, records)] != [*rest]


@pytest.mark.parametrize(
    "lie",
    [
        lambda rows, limit: rows + 0.5,
        lambda rows, limit: np.where(rows, np.nan, 0.0),
        lambda rows, limit: rows[:, :1],
        lambda rows, limit: rows[:-1],
        lambda rows, limit: np.vstack([rows, rows]),
    ],
)
def test_what_is_no_row_of_integers_for_every_record_counts_as_zeros(lie):
    assert [*total(Lies(lie=lie), project_table(facts(), table(9)))] == [0, 0]


@attrs.frozen(kw_only=True)
class ByLayer(DenseNetwork):
    """Clips every layer to the whole clip, and forgets the root of their number."""

    def contributions(self, query, block, public):
        rows = super().contributions(query, block, public).integers
        limit = math.floor(math.ldexp(self.clip, -query.sum.unit))
        return IntegerRows(np.where(rows, np.sign(rows) * limit, 0).astype(np.int32))


def test_layers_that_are_clipped_one_by_one_count_as_zeros():
    records = project_table(facts(), table(9)).take(np.arange(1, 9))
    assert any(unchecked(ByLayer(), records))
    assert not any(total(ByLayer(), records))


# --- `training.row-alone`: dropout


@attrs.frozen(kw_only=True)
class Dropping(DenseNetwork):
    """Leaves out columns by randomness of the step: the same for every record."""

    def seed(self, block, public):
        return int(public.randomness.stream("training.dropout").words(1)[0])

    def gradients(self, weights, block, targets, public):
        keeps = np.random.default_rng(self.seed(block, public)).uniform(size=(1, 3)) < 0.5
        block = Records(features=np.where(keeps, block.features, 0.0), labels=block.labels)
        return super().gradients(weights, block, targets, public)


class SeededByData(Dropping):
    """Seeds its randomness with what the records of the batch hold."""

    def seed(self, block, public):
        return zlib.crc32(block.features.tobytes())


@pytest.mark.parametrize(("kind", "is_lawful"), [(Dropping, True), (SeededByData, False)])
def test_dropout_by_public_coins_breaks_no_law_and_by_the_batch_it_does(kind, is_lawful):
    columns = {name: Range(-1, 1) for name in ("a", "b", "c")}
    domain = Domain(columns=columns, target="y", labels=Range(-1, 1), limit=40)
    case = Case(learner=kind(steps=1), bound=SumBound(), domain=domain, adjacency=ADD_REMOVE)
    broken = {verdict.law.id for verdict in sum_verdicts(case) if verdict.failed}
    assert not broken if is_lawful else "sum.row-wise" in broken


# --- `training.longest`


@attrs.frozen(kw_only=True)
class WithoutAllowance(Proposer):
    """Scales to the whole clip and rounds then."""

    @property
    def room(self):
        return float(math.floor(math.ldexp(self.sum.clip, -self.sum.unit)))


@pytest.mark.parametrize(("kind", "is_short"), [(Proposer, True), (WithoutAllowance, False)])
def test_rows_as_long_as_the_clip_are_accepted_if_rounding_was_allowed_for(kind, is_short):
    query, size = declared(1.0), 400
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(200, size))
    gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
    rows = kind(sum=query, size=size).rows(gradients, 200).accepted(query.clip, query.unit)
    assert bool(rows.any(axis=1).all()) is is_short


# --- `training.bands`: who is seen when


@attrs.frozen(kw_only=True)
class Watched(DenseNetwork):
    """Notes which records every step sees."""

    steps_of_run: ClassVar[list] = []

    def contributions(self, query, block, public):
        self.steps_of_run.append(np.rint((block.features[:, 0] + 1) * 1e6).astype(int).tolist())
        return super().contributions(query, block, public)


def shortest_gap(steps):
    """The fewest steps between two in which one record is seen; `len(steps)` if there are none."""
    last, gap = {}, len(steps)
    for number, seen in enumerate(steps):
        for record in seen:
            gap = min(gap, number - last.get(record, -len(steps)))
            last[record] = number
    return gap


def test_no_record_is_seen_twice_while_its_sum_is_weighed():
    """10^4 draws; a trainer that draws turns anew at every step shows records again at once."""
    Watched.steps_of_run.clear()
    learner = Watched(steps=25, bands=4, batch=80)
    planned(learner).run(table(), replaying=HERE, secret=SecretRandomness.rehearsal(5))
    steps = Watched.steps_of_run
    assert len(steps) == 25
    assert shortest_gap(steps) == 4
    assert 60 < np.mean([len(seen) for seen in steps]) < 100
    rng = np.random.default_rng(0)
    anew = [np.flatnonzero(rng.uniform(size=RECORDS) < 0.2).tolist() for _ in range(25)]
    assert shortest_gap(anew) == 1


# --- `training.parity`

SIZE = 300


@attrs.frozen(kw_only=True)
class OneUnit(DenseNetwork):
    """Every record adds one unit to each weight."""

    def size(self, domain):
        return SIZE

    def initial(self, stream, domain):
        return np.zeros(SIZE)

    def contributions(self, query, block, public):
        return IntegerRows(np.ones((len(block), SIZE), dtype=np.int32))


def residues(estimates, unit):
    """Multiples of x_1 modulo 16, wherever estimates are integers plus multiplied integers."""
    first, second = best_bands(2, 2)
    return np.rint(16 * (estimates[1] + second / first * estimates[0]) / unit) % 16


def released(count):
    """Estimates of a run in which every record adds one unit to each weight, and the unit."""
    outcome = planned(OneUnit(steps=2, bands=2)).run(
        table(count), replaying=HERE, secret=SecretRandomness.rehearsal(7)
    )
    values = [answer.value for answer in outcome.answers["release"]]
    return solved(best_bands(2, 2), values), 2.0 ** declared(1.0).unit


def multiplied(count):
    """Noise memory: integer noise that is multiplied by K^-1 before it is added to integers."""
    first_band, second_band = best_bands(2, 2)
    distribution, noise = (
        gaussian_distribution(1000.0, SIZE),
        Stream(b"0" * 32, ("noise",), secret=True),
    )
    first, second = distribution.symmetric(SIZE, noise), distribution.symmetric(SIZE, noise)
    return [count + first, second - second_band / first_band * first], 1.0


def test_correlated_noise_on_integers_tells_the_first_sum_and_sums_with_bands_do_not():
    first, second = best_bands(2, 2)
    assert 16 * second % first == 0
    for count in (0, 1):
        assert (residues(*multiplied(count)) == 16 * second // first * count).all()
        fractions = np.bincount(residues(*released(count)).astype(int), minlength=16) / SIZE
        assert fractions.max() < 0.2
