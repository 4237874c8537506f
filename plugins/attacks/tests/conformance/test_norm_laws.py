"""A claim in each norm that a query lists, attacked in that norm."""

from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from dpcore import REPLACE_ONE, OneShot, Query, Sensitivity, SensitivityBound, Sum, SumQuery
from dpcore.bound import Refused
from dpcore.exact import Exact
from dpcore.summing import SummingLearner
from dpcore_attacks.attacks.counterexample import load
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.bounds import HOLDS, bound_verdicts
from dpcore_attacks.laws.bounds.sums import CLIPPED, SMALL_UNIVERSE, sum_verdicts
from dpcore_attacks.laws.law import Outcome

from doubles import Numbers, domain

BRIEF = Effort(pairs=300)


@attrs.frozen(kw_only=True)
class Signs(OneShot):
    """The mean of both columns: a replaced record moves it by 4/n in l1, by 2 sqrt(2)/n in l2."""

    bounds: ClassVar[Any] = ()
    total: ClassVar[bool] = True

    def queries(self, public):
        return (Query(name="means", shape=(2,), distance="l2", norms=("l1", "l2")),)

    def statistic(self, query, records, public, secret):
        assert query.distance == "l2"  # the learner is asked as it planned, whatever is attacked
        return records.features.mean(axis=0)

    def assemble(self, answers, public):
        return Numbers(answers["means"])


@attrs.frozen(kw_only=True)
class By(SensitivityBound):
    """So much over n in each norm."""

    learner: ClassVar[Any] = Signs
    l1: float
    l2: float = 2 * np.sqrt(2) * (1 + 1e-12)

    def sensitivity(self, query, learner, public, adjacency):
        if not REPLACE_ONE.covers(adjacency):
            return Refused("of replacements")
        return Sensitivity(
            value=getattr(self, query.distance.value) / public.domain.records,
            distance=query.distance,
            adjacency=REPLACE_ONE,
            source="two columns in [-1, 1]",
        )


def case(bound):
    return Case(learner=Signs(), bound=bound, domain=domain(6, 2), adjacency=REPLACE_ONE)


def test_a_right_claim_in_each_norm_holds_and_is_attained():
    findings = falsify(case(By(l1=4.0)), BRIEF)
    assert [finding.claim.distance for finding in findings] == ["l2", "l1"]
    for finding in findings:
        assert 0.99 < finding.worst <= 1 + 1e-9


def test_a_further_norm_with_too_small_a_claim_is_caught(tmp_path):
    # what is right of l2 is copied to l1: the most likely mistake
    verdicts, findings = bound_verdicts(case(By(l1=2 * np.sqrt(2))), Effort(pairs=600))
    failures = [v for v in verdicts if v.outcome is Outcome.FAILED]
    assert HOLDS in {verdict.law for verdict in failures}
    assert all("means in l1" in v.subject for v in failures if v.law is HOLDS)
    broken = next(finding for finding in findings if finding.broken)
    # the conformance suite stops at the first pair that breaks a claim, a search at the worst one
    assert 1 + 1e-9 < broken.worst <= np.sqrt(2) * (1 + 1e-6)
    worst = max(finding.worst for finding in falsify(case(By(l1=2 * np.sqrt(2))), BRIEF))
    assert worst == pytest.approx(np.sqrt(2), rel=1e-6)
    # the counterexample names the norm, so that its file replays against the same claim
    broken.counterexample.save(tmp_path / "pair.npz")
    shot = load(tmp_path / "pair.npz").replay(broken.case)
    assert shot.ratio == pytest.approx(broken.worst)


@attrs.frozen(kw_only=True)
class Pairs(SummingLearner, OneShot):
    """Both columns, clipped by the author in l2 only, of a query that lists l1 too."""

    def queries(self, public):
        return (
            SumQuery(name="pair", shape=(2,), distance="l2", norms=("l1", "l2"), sum=Sum(clip=1.0)),
        )

    def contributions(self, query, block, public):
        rows = np.asarray(block.features)
        return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]

    def assemble(self, answers, public):
        return Numbers(answers["pair"])


class ClippedInOneNorm(Pairs):
    """The same, added by the author, who forgets the other norm."""

    def partial(self, query, block, public):
        rows = np.ldexp(self.contributions(query, block, public), -query.sum.unit)
        return Exact.of(np.trunc(rows * (1 - 1e-9)).astype(np.int64).sum(axis=0), query.sum.unit)


@pytest.mark.parametrize("learner", [Pairs, ClippedInOneNorm])
def test_an_author_who_clips_in_one_of_two_norms_is_caught_and_the_core_is_not(learner):
    from dpcore.learners.bounds.sum import SumBound

    tested = Case(learner=learner(), bound=SumBound(), domain=domain(20, 2), adjacency=REPLACE_ONE)
    outcomes = {verdict.law: verdict.outcome for verdict in sum_verdicts(tested)}
    expected = Outcome.PASSED if learner is Pairs else Outcome.FAILED
    assert outcomes[CLIPPED] is expected
    assert outcomes[SMALL_UNIVERSE] is expected
