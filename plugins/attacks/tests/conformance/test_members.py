"""Every member that pricing or a release reads has a law that attacks it, or cannot be wrong."""

import ast
import math
from functools import cache
from pathlib import Path

import attrs
import numpy as np
import pytest

import dpcore.bound
import dpcore.event
import dpcore.functions.interactive
import dpcore.mechanism
import dpcore.query
import dpcore.sampling
import dpcore.sensitivity
from dpcore import REPLACE_ONE, Query, Sensitivity
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.errors import NoClaimError
from dpcore.sampling import Poisson
from dpcore.sensitivity import HitDistribution, SensitivityDistribution, StepSensitivity
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import LAWS
from dpcore_attacks.laws.bounds.bounds import bound_verdicts

from builders import price_label_mean, price_learner
from conformance.members import MEMBERS, Attacked
from doubles import LabelMean, LabelMeanBound
from gallery.core import Gaussian, GaussianEvent
from gallery.entry import subclass
from gallery.wrong_members import WRONG

ROOT = Path(__file__).parents[4]

CLASSES = {
    dpcore.mechanism: ("Needs", "AnyMechanism", "Mechanism"),
    dpcore.functions.interactive: ("Interactive",),
    dpcore.bound: ("SensitivityBound",),
    dpcore.sensitivity: (
        *("AnySensitivity", "Sensitivity", "HitDistribution"),
        *("SensitivityDistribution", "StepSensitivity"),
    ),
    dpcore.event: ("Claims", "PrivacyCurve", "VectorCurve", "TwoEnds", "Event", "CompoundEvent"),
    dpcore.query: ("Sum", "Query", "SumQuery"),
    dpcore.sampling: ("Sampling", "Poisson", "Cyclic", "WithoutReplacement", "Order"),
}


def members(module, name):
    """Public methods and fields that a class defines, from the syntax tree of its module."""
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    (found,) = (node for node in tree.body if getattr(node, "name", "") == name)
    for node in found.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets)


def owners(module, name, member):
    """The rows that a member may have: its own class's, or that of a class it overrides."""
    return [f"{base.__name__}.{member}" for base in getattr(module, name).__mro__]


COLLECTED = [
    (module, name, member)
    for module, names in CLASSES.items()
    for name in names
    for member in members(module, name)
    if not member.startswith("_")
]


def test_every_member_has_a_row_and_every_row_a_member():
    missing = [
        f"{name}.{member}"
        for module, name, member in COLLECTED
        if not MEMBERS.keys() & {*owners(module, name, member)}
    ]
    assert not missing
    assert MEMBERS.keys() <= {f"{name}.{member}" for _, name, member in COLLECTED}


def test_no_class_of_these_modules_that_an_author_extends_is_left_out():
    for module, names in CLASSES.items():
        classes = {
            name
            for name, found in vars(module).items()
            if isinstance(found, type) and found.__module__ == module.__name__
        }
        assert classes - {*names} <= LEFT_OUT


LEFT_OUT = {
    *("WorstCase", "OverRandomness", "Conditional", "Refuted", "Refused"),  # words of a claim
    *("Components", "Claims", "Distance", "Direction", "Reads"),  # what the core hands to a bound
    *(
        "_Each",
        "_Derivation",
        "Oracle",
    ),  # the core's, and an oracle, which the laws `interactive` are about
}


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_law_of_the_suite_or_a_test_that_exists():
    laws = {law.id for law in LAWS}
    for member, row in MEMBERS.items():
        if isinstance(row, Attacked):
            assert row.law in laws, member
            assert bool(row.test) is (member not in WRONG), member
        if row.test:
            path, _, name = row.test.partition("::")
            assert name in functions_of(path), member


def test_enough_wrong_members_stand_beside_the_table():
    assert WRONG.keys() <= MEMBERS.keys()
    assert len(WRONG) >= 50


def broken(verdicts):
    return {verdict.law.id for verdict in verdicts if verdict.failed}


LONG = {"Needs.distance", "Needs.persons", "AnyMechanism.arithmetic", "AnyMechanism.event"}
LONG |= {"Poisson.probability", "Sampling.replaces_in_sums"}
ROWS = [pytest.param(member, marks=pytest.mark.slow if member in LONG else ()) for member in WRONG]


@pytest.mark.parametrize("member", ROWS)
def test_a_wrong_member_breaks_its_law(member):
    wrong = WRONG[member]
    assert MEMBERS[member].law in broken(wrong.judge(wrong.wrong))


@pytest.mark.parametrize("member", ROWS)
def test_the_right_member_breaks_none(member):
    wrong = WRONG[member]
    assert not broken(wrong.judge(wrong.right))


def test_a_bound_about_another_is_attacked():
    """What a bound chooses for a learner is the bound in force, of a plan and of its attacks."""

    class Half(LabelMeanBound):
        def sensitivity(self, query, learner, public, adjacency):
            right = super().sensitivity(query, learner, public, adjacency)
            return attrs.evolve(right, value=0.5 * right.value)

    class Chooses(LabelMeanBound):
        def about(self, learner, public, adjacency, claims):
            return Half()

    plan = price_learner(LabelMean(), bound=Chooses())
    (release,) = plan.schedule.releases
    found = bound_verdicts(Case.of(plan, release), Effort(pairs=500))[0]
    assert "bound.holds" in broken(found)


def test_no_number_of_a_guarantee_depends_on_words_or_shares(monkeypatch):
    def noise(plan):
        (release,) = plan.schedule.releases
        (planned,) = release.queries.values()
        return planned.mechanism.noise_multiplier, plan.guarantee.epsilon

    before = noise(price_label_mean())
    monkeypatch.setattr(Gaussian, "source", "another theorem")
    monkeypatch.setattr(Poisson, "source", "another one")

    class Worded(LabelMeanBound):
        def sensitivity(self, query, learner, public, adjacency):
            right = super().sensitivity(query, learner, public, adjacency)
            return attrs.evolve(right, source="in other words", premises=("one more premise",))

    class Shared(LabelMean):
        def queries(self, public):
            return tuple(attrs.evolve(query, share=7.0) for query in super().queries(public))

    bound = Worded()
    monkeypatch.setattr(Worded, "learner", Shared)
    assert noise(price_learner(Shared(), bound=bound)) == before


STEERED = {
    "largest_loss": lambda self, direction: 0.01,
    "atoms": 10**6,
    "is_costly": True,
}


@pytest.mark.parametrize("member", STEERED)
def test_what_steers_an_accountant_moves_no_certified_end_below_the_truth(member):
    """Ten Gaussians of mu 0.3 are one of mu 0.949: its epsilon lies between both ends."""
    wrong = subclass(GaussianEvent, **{member: STEERED[member]}, claims=dpcore.event.Claims())
    composed = PldAccountant(REPLACE_ONE).compose(wrong(mu=0.3, adjacency=REPLACE_ONE), 10)
    exact = PldAccountant(REPLACE_ONE).compose(
        GaussianEvent(mu=0.3 * math.sqrt(10), adjacency=REPLACE_ONE)
    )
    truth = exact.epsilon(1e-5)
    try:
        found = composed.epsilon(1e-5)
    except NoClaimError:  # on too short a grid no claim is made
        assert member == "largest_loss"
        return
    assert found.lower <= truth.upper
    assert found.upper >= truth.lower


def test_what_the_core_computes_of_a_sensitivity_is_the_formula():
    plain = {"distance": "l2", "adjacency": REPLACE_ONE, "source": "here"}
    number = Sensitivity(value=1.5, solver_error=0.25, range=2.0, **plain)
    assert number.unit == pytest.approx(2.0, rel=1e-12)
    assert number.unit >= 2.0
    assert (number.smallest, number.largest, number.plain()) == (number.unit, number.unit, 1.5)
    assert number.range_sensitivity == pytest.approx(3.0, rel=1e-12)
    assert number.range_sensitivity >= 3.0
    assert attrs.evolve(number, range=None).range_sensitivity == 2 * number.unit
    law = HitDistribution(atoms=(1.0, 3.0), weights=(0.5, 0.2), uncovered=0.1)
    assert (law.smallest, law.largest) == (1.0, 3.0)
    assert [law.beyond(d) for d in (0.0, 1.0, 3.0)] == pytest.approx([0.8, 0.3, 0.1])
    assert law.shifted(0.5).atoms == pytest.approx((1.5, 3.5), rel=1e-12)
    assert np.greater_equal(law.shifted(0.5).atoms, (1.5, 3.5)).all()
    of_orders = SensitivityDistribution(distribution=law, solver_error=0.25, **plain)
    assert of_orders.moved == law.shifted(0.5)
    assert (of_orders.smallest, of_orders.largest) == of_orders.moved.atoms
    assert (of_orders.plain()["smallest"], of_orders.plain()["largest"]) == (1.0, 3.0)
    steps = StepSensitivity(moved=(1.0, 2.0), contraction=(1.0, 0.5), solver_error=0.25, **plain)
    assert (steps.smallest, steps.largest) == pytest.approx((1.5, 2.5), rel=1e-12)
    assert steps.smallest >= 1.5
    assert steps.largest >= 2.5
    assert steps.plain() == {"steps": 2, "moved": 2.0, "contraction": 1.0}
    assert not steps.covers_fallback


def test_what_the_core_computes_of_a_query():
    query = Query(name="q", shape=(2, 3), distance="l2", field="complex")
    assert query.real_size == 12
    assert (query.dtype, attrs.evolve(query, field="real").dtype) == (np.complex128, np.float64)
    assert (query.nothing() == np.zeros((2, 3), complex)).all()
    assert query.with_args({"a": 1}) == query
    assert query.with_args({"a": 1}).args == {"a": 1}
    assert not query.unfit(np.ones((2, 3)) * 1j)
    integers = Query(name="q", shape=(2,), distance="l2", values="integers", within=(0, 3))
    assert not integers.unfit([0, 3])
    for unfit in ([0.5, 1], [0, 4], [0, np.nan], [1], [1j, 0]):
        assert integers.unfit(unfit)
