"""Reports that an author understands: of what, at which rows, on which line, how it was seen."""

import itertools
import re

import attrs
import numpy as np
import pytest
from scipy.spatial import distance

from dpcore import REPLACE_ONE
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.functions.kernels.linear import LinearKernel
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.excess import Sample
from dpcore_attacks.laws.attack_by_draws import AttackByDraws, Attempt
from dpcore_attacks.laws.bounds.bounds import bound_attacks
from dpcore_attacks.laws.law import BrokenLawError
from dpcore_attacks.laws.learners.kernels import kernel_verdicts
from dpcore_attacks.laws.learners.learners import learner_verdicts

from doubles import domain
from gallery.entry import Released, bounded, subclass, where


class Box(LinearKernel):
    """1 within a distance, else 0: Fourier transforms of balls are not positive."""

    def norm(self, domain):
        return 1.0

    def diagonal(self, rows):
        return np.ones(len(rows))

    def __call__(self, left, right):
        return (distance.cdist(left, right) < 1.0).astype(float)


def test_a_matrix_that_is_no_kernels_is_shown_at_few_rows():
    """The rows that are named must have a negative eigenvalue by themselves."""
    (verdict,) = [v for v in kernel_verdicts(Box(), domain(10, 3)) if v.failed]
    assert verdict.detail.startswith(f"the matrix of {Box()!r} over ")
    rows = [
        [float(cell) for cell in row.split(", ")]
        for row in re.findall(r"\[([-\d., e]+)\]", verdict.detail)
    ]
    assert 2 <= len(rows) <= 8
    matrix = (distance.cdist(rows, rows) < 1.0).astype(float)
    (least,) = re.findall(r"alone it has (-\S+): a kernel's", verdict.detail)
    assert np.linalg.eigvalsh(matrix)[0] == pytest.approx(float(least), rel=0.01)
    assert float(least) < 0


@pytest.mark.parametrize("turned", [False, True])
def test_what_draws_tell_is_an_event_with_its_counts_under_either_neighbour(turned):
    rng = np.random.default_rng(0)
    outputs = [(rng.random((1000, 1)) < fraction).astype(float) for fraction in (0.9, 0.1)]
    after, before = outputs[::-1] if turned else outputs
    attack = AttackByDraws(event=PureEvent(epsilon=1.0, adjacency=REPLACE_ONE), rate=1e-4)
    choice = Attempt(
        lambda count, start: (after, before),
        lambda p, q: [Sample(p=p, q=q, what="the choice among 2")],
        "at scale 1, a tie",
    )
    with pytest.raises(BrokenLawError) as caught:
        attack.run(1000, choice)
    # The last three fifths are those that were tested.
    sides = [(values[400:, 0] == 1).sum() for values in (after, before)]
    counts = [
        f"{hits:,} of 600 times {when} the movement"
        for hits, when in zip(sides, ("after", "before"), strict=True)
    ]
    zeros = [
        f"{600 - hits:,} of 600 times {when} the movement"
        for hits, when in zip(sides, ("after", "before"), strict=True)
    ]
    text = str(caught.value)
    assert text.startswith("at scale 1, a tie: the choice among 2 ")
    assert any(all(part in text for part in pair) for pair in (counts, zeros))
    assert "(chance 0.0001 of an error), and 0" in text
    assert "-0 is claimed" not in text


class JumpsAtSeven(Released):
    """A count that jumps at seven records."""

    def width(self, public):
        return 1

    def statistic(self, query, records, public, secret):
        count = int((records.labels > 0).sum())
        if count >= 7:
            return np.array([100.0 + count])
        return np.array([float(count)])


def test_a_broken_bound_names_the_line_that_only_one_neighbour_reaches():
    learner = subclass(JumpsAtSeven)
    bound = subclass(bounded(lambda learner, domain: 1.0), learner=learner)
    case = Case(learner=learner(), bound=bound(), domain=where(12, 1), adjacency=REPLACE_ONE)
    stages = bound_attacks(case, Effort(pairs=60))
    broken = [v for v in itertools.chain.from_iterable(v for v, _ in stages) if v.failed]
    assert broken
    assert any("`return np.array([100.0 + count])`" in v.detail for v in broken)
    assert all("test_wording.py:" in v.detail for v in broken if v.law.id == "bound.holds")


CALLS = itertools.count()


class PlansByACounter(Released):
    """Its plan follows a counter outside of it, as one that reads a file would."""

    def queries(self, public):
        (query,) = super().queries(public)
        return (subclassed(query, next(CALLS)),)

    def statistic(self, query, records, public, secret):
        return np.zeros(query.shape)


def subclassed(query, number):
    return attrs.evolve(query, shape=(1 + number % 5,))


def test_a_query_that_is_not_as_planned_tells_its_change_and_how_it_was_seen():
    case = Case(
        learner=subclass(PlansByACounter)(),
        bound=bounded(lambda learner, domain: 1.0)(),
        domain=where(),
        adjacency=REPLACE_ONE,
    )
    details = {v.law.id: v.detail for v in learner_verdicts(case) if v.failed}
    text = details["learner.asks-as-planned"]
    assert "the query 'c' was asked in another form than planned (shape (" in text
    assert "gives another plan when it is called again with equal arguments" in text
