"""The page of learners and mechanisms says what the plan says, and every refusal what would fit.

What bounds claim of small examples of all learners is attacked in `test_acceptance_runs`, and of
persons' in `test_persons_sweep`. Here are claims in the norms that mechanisms take them in:
attacked where they were converted, and by brute force over all datasets of a small universe.
"""

import itertools
from typing import Any

import attrs
import numpy as np
import pytest

import dpcore
import dpcore_statistics
from dpcore import Distance, Records, Registry, SensitivityBound, SumQuery
from dpcore.bound import Refused
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.errors import DpcoreError
from dpcore.functions import ProcessQuery
from dpcore.registry.kinds import BOUND, COMPONENTS, LEARNER, MECHANISM
from dpcore.sensitivity import Conditional, Sensitivity
from dpcore_attacks import component_summary, fitting
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case, queries_of
from dpcore_attacks.effort import Effort

from whole import matrix

BEFORE = 72
"""Pairs with a price before bounds were converted."""

WAYS_OUT = (" fit", "choose among", "answer ", "answers ", "take ", "goes with")
"""Words of which every refusal has one: what is next to them is what would fit."""

REFUSED = {"statistics.private_keys": "gaussian", "statistics.quantiles": "laplace"}
PRICED = {"statistics.count": "laplace", "statistics.quantiles": "exponential"}


@pytest.fixture(scope="module")
def shipped():
    return fitting.Matrix.packaged()


@pytest.mark.slow  # every learner is priced with every mechanism
def test_page_and_data_are_what_the_plan_answers():
    registry = Registry.default()
    answers = matrix.pairs(registry)  # what is no DpcoreError ends here
    assert matrix.PAGE.read_text() == matrix.page(list(matrix.rows(answers))), "run matrix.py"
    assert matrix.DATA.read_text() == matrix.data(answers, registry), "run matrix.py"


@pytest.mark.parametrize(("name", "mechanism"), [*REFUSED.items(), *PRICED.items()])
def test_data_of_a_few_pairs_are_what_the_plan_answers(name, mechanism, shipped):
    registry = Registry.default()
    assert shipped.pair(name, mechanism, registry) == matrix.pair(name, mechanism, registry)


def test_the_page_says_what_the_data_say_of_every_pair(shipped):
    assert matrix.PAGE.read_text() == matrix.page(list(matrix.rows(shipped.pairs)))
    registry = Registry.default()
    assert {*shipped.pairs} == {*registry.names(LEARNER)}
    for fits in shipped.pairs.values():
        assert {*fits} == {"", *registry.names(MECHANISM)}
    assert {*shipped.summaries} == {kind.name for kind in COMPONENTS}
    for kind in COMPONENTS:
        assert {*shipped.summaries[kind.name]} == {*registry.names(kind)}


def test_twice_as_many_pairs_have_a_price_as_before_bounds_were_converted(shipped):
    priced = [fit for fits in shipped.pairs.values() for name, fit in fits.items() if name]
    assert sum(bool(fit.relations) for fit in priced) >= 2 * BEFORE


def test_every_learner_but_the_printed_one_has_a_price_without_a_mechanism(shipped):
    printed = {"explainable_boosting.printed", "hessian_mixing.eigenvalue", "ntk.printed"}
    assert {name for name, fits in shipped.pairs.items() if fits[""].reason} == printed


def test_every_refusal_says_what_would_fit(shipped):
    refusals = {fit.reason for fits in shipped.pairs.values() for fit in fits.values()} - {""}
    assert [r for r in refusals if not any(words in r for words in WAYS_OUT)] == []


def test_shipped_components_are_described_without_a_price(monkeypatch):
    def unpriced(*args, **kwargs):
        raise AssertionError("priced")

    monkeypatch.setattr(fitting, "price", unpriced)
    monkeypatch.setattr(component_summary, "examples", unpriced)
    for name in ("gaussian", "ntk.regression", "linear.sufficient_statistics"):
        for summary in component_summary.summaries(name, Registry.default()):
            assert summary.fits
            assert summary.example or summary.kind == BOUND.name


def test_a_pair_with_a_component_of_no_packaged_plugin_is_asked_live(shipped):
    registry = Registry.of(dpcore_statistics)
    assert shipped.pair("statistics.count", "laplace", registry) is None
    assert shipped.pair("statistics.count", "laplace", Registry.default()).relations
    assert not fitting.has_packaged_only(registry)


_ROWS = [*itertools.product((-1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0)), (0.5, -1.0, 0.25)]
_MOST = 3  # records in a dataset
_MOST_QUERIES = 4  # of one query, at arguments that answers of any size lead to
_NORMS = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: np.inf}
_BY_VALUES = {name for name in Registry.default().names(LEARNER) if "private_" not in name}


def _records(rows, query):
    table = np.array(rows, dtype=float).reshape(-1, 3)
    steps = getattr(query.sampling, "steps", None)
    order = None if steps is None else np.resize(np.arange(len(table)), steps)
    return Records(features=table[:, :2], labels=table[:, 2], order=order)


def _neighbours(relation):
    """All pairs of datasets, whose first row is the one that changes, comes or goes."""
    if relation is dpcore.REPLACE_ONE:
        for rest in itertools.combinations_with_replacement(_ROWS, _MOST - 1):
            yield from itertools.combinations([(row, *rest) for row in _ROWS], 2)
        return
    for size in range(_MOST):
        for rest in itertools.combinations_with_replacement(_ROWS, size):
            yield from ((rest, (row, *rest)) for row in _ROWS)


def _largest_moves(case, query, relation):
    """In each norm, how far the query's statistic moves at most."""
    secret = dpcore.SecretRandomness.rehearsal(0)
    moves = dict.fromkeys(_NORMS, 0.0)
    for planned_query in queries_of(case, query.name, np.random.default_rng(0))[:_MOST_QUERIES]:
        # sums do not depend on the order of their records
        place = sorted if isinstance(planned_query, SumQuery) else tuple
        values = {}
        for pair in _neighbours(relation):
            pair = [tuple(place(rows)) for rows in pair]
            for rows in pair:
                if rows not in values:
                    randomness = secret.learner(0, planned_query.name, 1)
                    value = case.learner.statistic(
                        planned_query, _records(rows, planned_query), case.public, randomness
                    )
                    values[rows] = np.asarray(value).ravel()
            change = values[pair[1]] - values[pair[0]]
            change = np.concatenate([change.real, change.imag]).astype(float)
            for norm, order in _NORMS.items():
                moves[norm] = max(moves[norm], float(np.linalg.norm(change, ord=order)))
    return moves


@pytest.mark.slow
@pytest.mark.parametrize("relation", matrix.RELATIONS, ids=str)
@pytest.mark.parametrize("name", sorted(_BY_VALUES - matrix.OF_A_MODEL))
def test_no_pair_of_neighbours_of_a_small_universe_moves_a_statistic_farther(name, relation):
    registry, moves, queries_tried = Registry.default(), {}, 0
    for mechanism, fit in fitting.Matrix.packaged().pairs[name].items():
        if str(relation) not in fit.relations:
            continue
        instance = matrix.instance(mechanism, registry)
        request = matrix.request_of(name, instance, relation, registry, records=_MOST)
        plan = fitting.answer(request, registry).plan
        for scheduled in plan.schedule.releases if plan else ():
            case = Case.of(plan, scheduled)
            for query_name, planned_query in scheduled.queries.items():
                claim = planned_query.sensitivity
                # of distributions over orders, kernels, matrices and processes no norm of arrays
                # says
                if isinstance(planned_query.query, ProcessQuery):
                    continue
                if not isinstance(claim, Sensitivity) or claim.distance not in _NORMS:
                    continue
                if isinstance(claim.validity, Conditional):
                    continue  # it says nothing of pairs that break its assumptions
                if query_name not in moves:
                    moves[query_name] = _largest_moves(case, planned_query.query, relation)
                assert moves[query_name][claim.distance] <= claim.largest * (1 + 1e-9)
                queries_tried += 1
    if not queries_tried:
        pytest.skip("no claim of it is a number for arrays")


@attrs.frozen(eq=False)
class AsPriced(SensitivityBound):
    """What a plan says of each query, in the norm of its mechanism."""

    queries: Any

    def sensitivity(self, query, learner, public, adjacency):
        claim = self.queries[query.name].sensitivity
        return claim if isinstance(claim, Sensitivity) else Refused("a law is never converted")


@pytest.mark.slow
@pytest.mark.parametrize("relation", matrix.RELATIONS, ids=str)
@pytest.mark.parametrize("name", sorted({*Registry.default().names(LEARNER)} - matrix.OF_A_MODEL))
def test_no_pair_of_neighbours_moves_a_statistic_farther_than_its_converted_claim(name, relation):
    registry, attacked = Registry.default(), 0
    for mechanism in (Laplace(), Gaussian()):
        try:
            plan = matrix.plan_of(name, mechanism, relation, registry)
        except DpcoreError:
            continue
        for scheduled in plan.schedule.releases:
            queries = scheduled.queries
            if all(
                query.sensitivity.distance is query.query.distance for query in queries.values()
            ):
                continue
            case = attrs.evolve(Case.of(plan, scheduled), bound=AsPriced(queries))
            findings = [f for f in falsify(case, Effort(pairs=300)) if not f.reason]
            assert not [f for f in findings if f.broken or f.fallback_broken]
            attacked += len(findings)
    if not attacked:
        pytest.skip("no bound of it is converted")
