"""A bound may be in its learner: no name, no hook; and no subclass inherits it."""

import types

import attrs
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    OneShot,
    Query,
    Registry,
    Sensitivity,
    SensitivityBound,
    hookimpl,
)
from dpcore.errors import NoClaimError, SpecError
from dpcore.guarantee import Status
from dpcore.models.features.identity import Identity
from dpcore.models.linear import LinearModel
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine

from builders import price_learner
from conformance.test_kit import SPEC
from doubles import domain


@attrs.frozen
class HandedBound(SensitivityBound):
    """2M/n."""

    factor: float = 1.0

    def sensitivity(self, query, learner, public, adjacency):
        moved = self.factor * 2 * public.domain.label_bound / public.domain.records
        return Sensitivity(
            value=moved * (1 + 1e-12), distance="l2", adjacency=REPLACE_ONE, source="a test"
        )


@attrs.frozen
class Mean(OneShot):
    """Total: a mean of clipped labels."""

    bounds = (HandedBound(),)
    total = True

    def queries(self, public):
        return (Query(name="mean", shape=(1,), distance="l2"),)

    def statistic(self, query, records, public, secret):
        return records.labels.sum(keepdims=True) / public.domain.records

    def assemble(self, answers, public):
        weights = answers["mean"].repeat(Identity().width(public.domain))
        return LinearModel(domain=public.domain, features=Identity(), coefficients=weights)


@attrs.frozen
class Twice(Mean):
    """Another statistic: what its parent's theorem says is false of it."""

    def statistic(self, query, records, public, secret):
        return 2 * super().statistic(query, records, public, secret)


def plan(learner, adjacency=REPLACE_ONE, facts=None, **options):
    return price_learner(learner, domain=facts or domain(40), adjacency=adjacency, **options)


def test_a_learner_that_holds_its_bound_is_priced_without_any_name():
    made = plan(Mean())
    assert made.guarantee.status is Status.PROVED
    (scheduled,) = made.schedule.releases
    assert scheduled.bound == HandedBound()
    assert scheduled.queries["mean"].sensitivity.value == pytest.approx(2 / 40)
    assert Case.of(made, scheduled).bound is scheduled.bound


def test_a_relation_that_hides_the_count_is_refused_without_a_line_in_the_bound():
    facts = attrs.evolve(domain(40), exact=None, limit=40)
    with pytest.raises(NoClaimError, match="HandedBound: the exact number of records is needed"):
        plan(Mean(), ADD_REMOVE, facts)


def test_no_subclass_inherits_a_theorem():
    with pytest.raises(SpecError, match="HandedBound is not about Twice"):
        plan(Twice())
    with pytest.raises(SpecError, match="HandedBound is not about Twice"):
        plan(Twice(), bound=HandedBound())


def test_a_bound_without_a_learner_serves_nobody_who_does_not_hold_it():
    with pytest.raises(SpecError, match="HandedBound is not about Mean"):
        plan(Mean(), bound=HandedBound(factor=0.5))


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_kit_attacks_a_held_bound(factor, tmp_path):
    learner = attrs.make_class("Mean", [], bases=(Mean,), frozen=True)
    learner.bounds = (HandedBound(factor=factor),)
    path = tmp_path / "example.yaml"
    path.write_text(SPEC)
    made = types.ModuleType("held")
    hooks = {"dpcore_learners": {"mean": learner}, "dpcore_examples": {"it": path}}
    for name, given in hooks.items():
        setattr(made, name, hookimpl(lambda given=given: given, specname=name))
    report = examine("held", Registry.of(made), Effort(pairs=300, samples=200))
    broken = {v.law.id for v in report.verdicts if v.failed and "HandedBound" in v.subject}
    assert ("bound.holds" in broken) == (factor < 1)
