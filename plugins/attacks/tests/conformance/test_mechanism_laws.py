"""Laws of every mechanism of the core: calibration, monotony in scale, what it declares."""

import attrs
import numpy as np
import pytest

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.accounting.methods.basic import BasicAccountant
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.pricing.calibration import calibrate, compose
from dpcore.event import Direction
from dpcore.functions.interactive import Interactive
from dpcore.mechanism import Mechanism, free_field, is_calibrated
from dpcore.query import Query
from dpcore.registry.kinds import MECHANISM
from dpcore.registry.registry import Registry
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.mechanisms.mechanisms import event_matches_verdict, mechanism_cases

from mechanisms.mechanism_checks import bound, noise


def _serves(made: type[Mechanism]) -> bool:
    """Whether it answers questions about a function: test_interactive holds their laws."""
    return issubclass(made, Interactive)


MECHANISMS = Registry.of().load("dpcore").of(MECHANISM)
FIXED = {"truncated_laplace": {"truncation": 1e-6}, "gaussian_sampling": {"lam0": 2.0}}
VARIANTS = [
    *((name, {}) for name, made in sorted(MECHANISMS.items()) if not _serves(made)),
    ("gaussian", {"noise": "float"}),
    ("laplace", {"noise": "float"}),
    ("randomized_response", {"categories": 7}),
]
UNITS = {"gaussian_sampling": 0.01}
SUMS = ("discrete_gaussian", "gaussian_sampling", "l2_gamma")


def planned(name: str, extra: dict[str, object], size: int = 3) -> tuple[Mechanism, Query, float]:
    made = MECHANISMS[name]
    mechanism = made(**FIXED.get(name, {}), **extra)
    distance = made.needs.distance
    shape = (size, size) if distance == "psd_rows" else (size,)
    return mechanism, Query(name="q", shape=shape, distance=distance), UNITS.get(name, 1.0)


CALIBRATED = [
    pytest.param(
        name,
        extra,
        size,
        # their curves are sums over many cells, asked for some thousand times
        marks=[pytest.mark.slow] if size == 3 and name in SUMS else [],
    )
    for name, extra in VARIANTS
    for size in (1, 3)
]


@pytest.mark.parametrize(("name", "extra", "size"), CALIBRATED)
def test_a_mechanism_is_calibrated_to_a_budget_and_not_far_below_it(
    name: str, extra: dict[str, object], size: int
) -> None:
    mechanism, query, unit = planned(name, extra, size)
    sensitivity = bound(unit, query.distance)
    planned_query = PlannedQuery(
        query=query, sensitivity=sensitivity, mechanism=mechanism, share=1.0
    )
    accountant = BasicAccountant(REPLACE_ONE)
    (locate_errors,) = calibrate([planned_query], accountant, epsilon=1.0, delta=1e-5)
    spent = compose([locate_errors], accountant).epsilon(1e-5).upper
    assert 0.97 < spent <= 1.0
    value = np.zeros(query.shape) if query.distance != "psd_rows" else np.eye(size)
    released = locate_errors.mechanism.release(value, query, sensitivity, noise(name))
    assert released.shape == query.shape
    assert np.isfinite(released).all()


@pytest.mark.parametrize(("name", "extra"), VARIANTS)
@pytest.mark.parametrize("size", [1, 3])
def test_loss_never_increases_in_scale(name: str, extra: dict[str, object], size: int) -> None:
    mechanism, query, unit = planned(name, extra, size)
    sensitivity = bound(unit, query.distance)
    before = [1.0] * 4
    for scale in 2.0 ** np.arange(-6, 9, 0.5):
        event = mechanism.at(float(scale), query, sensitivity).event(query, sensitivity)
        deltas = [
            max(event.curve.upper_at(e, direction) for direction in Direction)
            for e in (0.0, 0.1, 1.0, 5.0)
        ]
        assert all(d <= b * (1 + 1e-6) + 1e-12 for d, b in zip(deltas, before, strict=True))
        before = deltas


@pytest.mark.parametrize(("name", "extra"), VARIANTS)
def test_equal_streams_give_equal_releases_and_others_do_not(
    name: str, extra: dict[str, object]
) -> None:
    mechanism, query, unit = planned(name, extra, 40)
    sensitivity = bound(unit, query.distance)
    mechanism = mechanism.at(3.0, query, sensitivity)
    value = np.zeros(query.shape) if query.distance != "psd_rows" else np.eye(40)
    one, same, other = (
        mechanism.release(value, query, sensitivity, noise(name, number)) for number in (1, 1, 2)
    )
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize(("name", "extra"), VARIANTS)
def test_the_value_is_left_as_it_was(name: str, extra: dict[str, object]) -> None:
    mechanism, query, unit = planned(name, extra)
    sensitivity = bound(unit, query.distance)
    value = np.zeros(query.shape) if query.distance != "psd_rows" else np.eye(3)
    kept = value.copy()
    value.flags.writeable = False
    mechanism.at(1.0, query, sensitivity).release(value, query, sensitivity, noise(name))
    assert (value == kept).all()


@pytest.mark.parametrize(("name", "extra"), VARIANTS)
def test_a_mechanism_declares_what_it_must(name: str, extra: dict[str, object]) -> None:
    mechanism, _, _ = planned(name, extra)
    assert free_field(type(mechanism))
    assert not is_calibrated(mechanism)
    assert mechanism.arithmetic in ("exact", "real")
    assert len(mechanism.source) > 10
    assert "rithmetic" in type(mechanism).__doc__  # says whether it is exact
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(mechanism, free_field(type(mechanism)), 1.0)


def test_a_smaller_move_that_is_priced_too_low_is_caught() -> None:
    """It costs half of what it should, where the whole sensitivity costs what it should."""

    class Cheaper(Gaussian):
        def event(self, query, sensitivity, moved=None):
            return super().event(query, sensitivity, None if moved is None else moved / 2)

    for mechanism, outcome in ((Gaussian(), Outcome.PASSED), (Cheaper(), Outcome.FAILED)):
        case = next(mechanism_cases(mechanism))
        verdict = event_matches_verdict(case, draws=20_000)
        assert verdict.outcome is outcome, verdict
        assert ("movement 1" in verdict.detail) is verdict.failed


def test_every_mechanism_of_the_core_draws_from_the_asks_stream():
    made = MECHANISMS.values()
    assert all(one.needs.stream for one in made)  # oracles cannot
