"""What measures the conformance suite is sound: every entry can be tested, is wrong, and its
sibling is not.
"""

import attrs
import numpy as np
import pytest

from dpcore import REPLACE_ONE, Public, PublicRandomness, Records, SecretRandomness
from dpcore.event import Direction
from dpcore.functions import Interactive

from doubles import domain
from gallery.core import (
    BOUND,
    LEARNER,
    GaussianEvent,
    Identity,
    LaplaceEvent,
    NoClaimError,
    UnsupportedEventError,
    examined,
    interactive_cases,
    load_spec,
    mechanism_cases,
    registry_of,
)
from gallery.everyday import EVERYDAY
from gallery.hidden import HIDDEN, UNUSUAL_TOO
from gallery.mutants import MUTANTS
from gallery.mutants.parents import CLAIMS
from gallery.reported import REPORTED
from gallery.strangers import STRANGERS, UNUSUAL
from gallery.unlike import UNLIKE

SETS = (REPORTED, MUTANTS, UNLIKE, STRANGERS, EVERYDAY, HIDDEN)
ENTRIES = {entry.name: entry for entries in SETS for entry in entries}
KINDS = ("learner", "mechanism", "accountant", "features", "function")


def test_both_sets_are_as_large_and_as_spread_as_they_say():
    reported = [[entry.kind for entry in REPORTED].count(kind) for kind in KINDS]
    assert reported == [16, 12, 5, 3, 4]
    assert len(MUTANTS) >= 110
    assert len(UNLIKE) >= 15
    assert len(STRANGERS) >= 30
    assert len(EVERYDAY) >= 30
    assert len(ENTRIES) == sum(map(len, SETS))
    assert all(entry.mistake.endswith(".") for entry in ENTRIES.values())
    assert all(entry.source for entry in REPORTED)
    assert all(entry.parent for entry in MUTANTS)


def usable(module):
    """Asks every component of a module for what a run would ask it for; how many there were."""
    registry = registry_of(module)
    loaded = registry.load(module.__name__)
    for path in loaded.examples.values():
        assert load_spec(path, registry).price(PublicRandomness(1)).guarantee
    components = loaded.components
    cases = [case for cls in components["mechanisms"].values() for case in prices(cls())]
    assert not components["mechanisms"] or cases
    for accountant in components["accountants"].values():
        assert any(0 <= spent < np.inf for spent in quotes(accountant))
    for features in components["features"].values():
        needs_count = {f.name for f in attrs.fields(features)} & {"count"}
        inner = {"features": Identity()} if "features" in attrs.fields_dict(features) else {}
        made = features(**dict.fromkeys(needs_count, 3), **inner)
        where = domain(9, 3)
        assert made.draw(where, PublicRandomness(1))(np.ones((4, 3))).shape == (
            4,
            made.width(where),
        )
    return sum(map(len, components.values())) and (cases or components)


def prices(mechanism):
    """The conformance suite's queries that a mechanism accepts, with a price for each."""
    functions = isinstance(mechanism, Interactive)
    for case in (interactive_cases if functions else mechanism_cases)(mechanism):
        at = case.mechanism.at(1.0, case.query, case.sensitivity)
        assert 0 <= at.event(case.query, case.sensitivity).curve.upper_at(0.5, Direction.REMOVE) < 1
        yield case


def quotes(accountant):
    """Upper ends for a Gaussian and a Laplace event, as far as they are supported."""
    for event in (
        GaussianEvent(mu=1.0, adjacency=REPLACE_ONE),
        LaplaceEvent(shift=1.0, adjacency=REPLACE_ONE),
    ):
        try:
            yield accountant(REPLACE_ONE).compose(event, 1).epsilon(1e-5).upper
        except (NoClaimError, UnsupportedEventError):
            continue


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_loads_and_is_priced_as_a_right_one_would_be(kind, tmp_path):
    entries = [entry for entry in ENTRIES.values() if entry.kind == kind]
    right = {entry.parent or entry.name: entry.right for entry in entries if entry.right}
    for name, make in [*((entry.name, entry.wrong) for entry in entries), *right.items()]:
        assert usable(make(tmp_path)), name


def alarms(entry, folder, effort):
    verdicts = examined(entry.right(folder), effort).verdicts
    return [(v.law.id, v.subject, v.detail) for v in verdicts if v.failed]


QUICK = [
    "small_groups_suppressed",
    "clip_of_one_layer",
    "deltas_not_added",
    "norm_of_the_rows_at_the_corners",
    "gdp_first_only",
    "affine_centred",
]


@pytest.mark.parametrize("name", QUICK)
def test_a_right_sibling_raises_no_alarm(name, tmp_path):
    assert not alarms(ENTRIES[name], tmp_path, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", [*REPORTED, *UNLIKE, *STRANGERS, *EVERYDAY, *HIDDEN], ids=lambda entry: entry.name
)
def test_no_right_sibling_of_a_reported_bug_raises_an_alarm(entry, tmp_path):
    assert entry.right is None or not alarms(entry, tmp_path, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("parent", sorted({entry.parent for entry in MUTANTS}))
def test_no_parent_of_a_mutant_raises_an_alarm(parent, tmp_path):
    first = next(entry for entry in MUTANTS if entry.parent == parent)
    assert not alarms(first, tmp_path, 0.1)


def claims_of(name, folder):
    """Learner, public facts, queries and bounds of an entry, as its example spec has them."""
    module = ENTRIES[name].wrong(folder)
    registry = registry_of(module)
    (path,) = registry.load(name).examples.values()
    spec = load_spec(path, registry)
    (release,) = spec.price(PublicRandomness(1)).schedule.releases
    learner = spec.request.releases[0].learner
    public = Public(domain=release.part, randomness=PublicRandomness(1), mu=release.mu)
    assert registry.component(LEARNER, f"{name}.learner") is type(learner)
    bound = registry.component(BOUND, f"{name}.bound")()
    (query,) = learner.queries(public)
    return learner, public, query, bound.sensitivity(query, learner, public, REPLACE_ONE).unit


def moved(name, folder, before, after):
    """How far one replaced record moves the statistic, over what is claimed."""
    learner, public, query, unit = claims_of(name, folder)
    randomness = SecretRandomness.rehearsal(0).learner(0, query.name, 1)
    if name.startswith("clipped_gradient"):
        query = attrs.evolve(query, args={"weights": np.zeros(query.shape)})
    first, second = (
        learner.statistic(query, records, public, randomness) for records in (before, after)
    )
    if query.shape == ():
        points = np.vstack([first.points, second.points])
        weights = np.concatenate([first.coefficients, -second.coefficients])
        return np.sqrt(weights @ query.kernel(points, points) @ weights) / unit
    return np.linalg.norm(first - second) / unit


def pair(labels, changed, rows=None, row=None, width=2):
    """Records with these labels, and the same with the first one's label (and row) replaced."""
    labels = np.array(labels, float)
    rows = np.tile([0.7] + [0.0] * (width - 1), (len(labels), 1)) if rows is None else rows
    other, moved_rows = labels.copy(), rows.copy()
    other[0] = changed
    if row is not None:
        moved_rows[0] = row
    return Records(features=rows, labels=labels), Records(features=moved_rows, labels=other)


def two_sides(left, right, label=1.0):
    """So many records on either side of 0 in the first column, the first of which moves."""
    rows = np.array([[-0.7, 0.0]] * left + [[0.7, 0.0]] * right)
    return pair([label] * (left + right), label, rows, (0.7, 0.0))


def clusters():
    """186 records here and 204 there, a hair apart: half of all distances are short, half long."""
    places = np.array([-0.6] * 186 + [0.6] * 204) + 1e-5 * np.arange(390)
    rows = np.column_stack([places, np.zeros(390)])
    return pair([1.0] * 390, 1.0, rows, (0.605, 0.0))


OUTLIERS = pair([-1.0] * 8 + [1.0] * 32, 1.0)
INSIDE = pair([-1.0] + [1.0] * 39, 0.31, row=(-0.42, 0.0))
NINE = pair([1.0] * 10 + [-0.5] * 30, -0.5)
LAST = pair([0.0] + [1.0] * 5 + [0.0] * 34, 0.5)
DECILE = pair([-1.0] * 3 + [1.0] * 37, 1.0)
WITNESSES = {
    **{f"{parent}_outliers_cut": OUTLIERS for parent in ("label_mean", "label_sum")},
    **{
        f"{parent}_outliers_cut": OUTLIERS
        for parent in ("sufficient_statistics", "clipped_gradient", "kernel_ridge")
    },
    **{
        f"{parent}_small_groups": two_sides(5, 35)
        for parent in ("label_mean", "label_sum", "sufficient_statistics", "clipped_gradient")
    },
    **{f"{parent}_rare_branch": INSIDE for parent in ("label_mean", "layers", "clipped_gradient")},
    **{f"{parent}_few_suppressed": NINE for parent in ("label_sum", "sufficient_statistics")},
    **{f"{parent}_stopped_early": LAST for parent in ("moments", "sufficient_statistics")},
    **{f"{parent}_winsorised": DECILE for parent in ("label_mean", "label_sum")},
    "bandwidth_by_the_median_of_distances": clusters(),
    "sum_in_half_precision": pair([-1.0] + [1.0] * 1024 + [0.6, -1.0] * 987 + [0.0], 1.0),
}
"""Two neighbours for entries that no search is sure to refute: the claim is false there."""


@pytest.mark.parametrize("name", WITNESSES)
def test_a_pair_of_neighbours_refutes_the_entry(name, tmp_path):
    before, after = WITNESSES[name]
    parent = ENTRIES[name].parent
    assert moved(name, tmp_path, before, after) > 1.05
    assert not parent or parent in CLAIMS


@pytest.mark.slow
@pytest.mark.parametrize("entry", [*UNUSUAL, *UNUSUAL_TOO], ids=lambda entry: entry.name)
def test_no_right_one_that_looks_wrong_raises_an_alarm(entry, tmp_path):
    verdicts = examined(entry.wrong(tmp_path), 0.1).verdicts
    assert not [v for v in verdicts if v.failed or v.untested]
