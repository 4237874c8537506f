"""The conformance suite on functions: wrong oracles and bounds are caught, right ones raise no
alarm.
"""

import json
import types

import attrs
import mpmath
import numpy as np
import pytest
from click.testing import CliRunner

from dpcore import REPLACE_ONE, Distance, Registry, hookimpl
from dpcore.console.app import app
from dpcore.functions import Expansion
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore_attacks.attacks.counterexample import load
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.kernel_norm import kernel_distance, kernel_norm
from dpcore_attacks.attacks.movement import movement
from dpcore_attacks.attacks.oracle_attack import attack
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.learners.learners import learner_verdicts
from dpcore_attacks.laws.oracles.interactive import interactive_cases, interactive_verdicts
from dpcore_kernel_ridge.bounds import KernelRidgeReplaceOne, Lemma2
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.per_query import PerQuery
from dpcore_kernel_ridge.ridge import KernelRidge

from doubles import Bump, BumpBound, domain
from gallery import wrong_functions as wrong

DRAWS = 1200


@pytest.mark.parametrize(("mechanism", "law", "kernel"), wrong.ORACLES)
def test_every_wrong_oracle_is_caught(mechanism, law, kernel):
    case = list(interactive_cases(mechanism))[kernel]
    attacked = law == "interactive.event-matches-answers"
    found = interactive_verdicts(case, draws=DRAWS if attacked else 60)
    assert law in {v.law.id for v in found if v.failed}


@pytest.mark.parametrize("name", wrong.BOUNDS)
def test_every_wrong_bound_of_a_function_is_broken(name):
    (finding,) = falsify(wrong.BOUNDS[name], Effort(pairs=1500))
    assert finding.broken


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "law", [None, pytest.param("gaussian", marks=SLOW), pytest.param("laplace", marks=SLOW)]
)
def test_a_right_oracle_raises_no_alarm_and_its_claim_is_not_vacuous(law):
    right = GaussianProcess() if law is None else PerQuery(questions=1, law=law)
    for case in interactive_cases(right):
        found = interactive_verdicts(case, draws=30)
        assert not [(v.law.id, v.detail) for v in found if v.failed]
    assert 0.1 < attack(case.duel(), draws=DRAWS).ratio <= 1


KERNELS = {"gaussian": GaussianKernel(bandwidth=0.5), "linear": LinearKernel()}


def ridge(kernel, lam, records, columns=2):
    learner = KernelRidge(kernel=KERNELS[kernel], regularization=lam)
    where = domain(records, columns, norm=1.0)
    return Case(learner=learner, bound=KernelRidgeReplaceOne(), domain=where, adjacency=REPLACE_ONE)


@pytest.mark.parametrize(
    ("kernel", "lam", "records", "least"),
    [
        pytest.param("linear", 1.0, 60, 0.8, marks=SLOW),
        ("linear", 0.01, 2, 0.95),
        ("gaussian", 1.0, 40, 0.7),
    ],
)
def test_t4_stands_in_the_kernels_norm_and_is_nearly_attained(kernel, lam, records, least):
    case = ridge(kernel, lam, records)
    (finding,) = falsify(case, Effort(pairs=800))
    assert least <= finding.worst <= 1
    (printed,) = falsify(attrs.evolve(case, bound=Lemma2()), Effort(pairs=200))
    assert printed.worst < finding.worst


def test_learner_laws_hold_for_functions_and_catch_wrong_ones():
    assert not [v for v in learner_verdicts(ridge("gaussian", 0.1, 12)) if v.failed]
    for fail in ("raise", "nan", "kernel"):
        case = Case(
            learner=Bump(fail=fail), bound=BumpBound(), domain=domain(12), adjacency=REPLACE_ONE
        )
        broken = {v.law.id for v in learner_verdicts(case) if v.failed}
        assert "learner.total" in broken


def test_the_kernels_norm_is_that_of_the_definition_and_never_more():
    """Against 50 digits; the norm of a difference does not see what both functions share."""
    rng = np.random.default_rng(0)
    kernel = GaussianKernel(bandwidth=0.7)
    for _ in range(20):
        points, weights = rng.uniform(-1, 1, (9, 2)), rng.normal(size=9)
        points[5:] = points[:4] + 1e-3 * rng.normal(size=(4, 2))
        with mpmath.workdps(50):
            rows, a = mpmath.matrix(points.tolist()), weights.tolist()
            halved = 2 * mpmath.mpf(0.7) ** 2
            square = sum(
                mpmath.mpf(a[i])
                * a[j]
                * mpmath.exp(-(mpmath.norm(rows[i, :] - rows[j, :]) ** 2) / halved)
                for i in range(9)
                for j in range(9)
            )
            exact = mpmath.sqrt(square)
        found = kernel_norm(kernel, points, weights)
        assert found <= float(exact) * (1 + 1e-15)
        assert found == pytest.approx(float(exact), rel=1e-9)
        shared = rng.uniform(-1, 1, (4, 2))
        one, two = (
            Expansion(
                kernel=kernel,
                points=np.vstack([shared, points[:k]]),
                coefficients=np.append([3.0, 1e6, -2.0, 0.1], weights[:k]),
            )
            for k in (9, 0)
        )
        assert kernel_distance(one, two) == pytest.approx(float(exact), rel=1e-6)
    other = Expansion(kernel=GaussianKernel(), points=points, coefficients=weights)
    with pytest.raises(ValueError, match="different kernels"):
        kernel_distance(one, other)
    with pytest.raises(ValueError, match="cannot be measured from functions"):
        movement(Distance.L2, one, two, 0)


@pytest.fixture
def dpcore(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


SPEC = """
dpcore: 1
data:
  source: nowhere.csv
  target: y
  domain: {records: 60, columns: {a: [-1, 1], b: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-5}
release:
  learner: {name: kernel_ridge.ridge, bandwidth: 0.5, regularization: 0.05}
  mechanism: gaussian_process
"""


def test_falsify_attacks_a_function_release_and_its_answers(dpcore, tmp_path):
    spec = tmp_path / "function.yaml"
    spec.write_text(SPEC)
    done = dpcore("falsify", spec, "--effort", "0.1", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["attacks"][0]["worst_ratio"] > 0.2
    assert not found["releases"][0]["broken"]


def test_falsify_breaks_one_scalar_from_its_own_spec(dpcore, tmp_path):
    spec = tmp_path / "printed.yaml"
    text = SPEC.replace("mechanism: gaussian_process", "mechanism: kernel_ridge.one_scalar")
    spec.write_text(text + "  bound: kernel_ridge.proposition_1\n")
    done = dpcore("falsify", spec, "--effort", "0.1")
    assert done.exit_code == 1
    assert "(OneScalar): BROKEN" in done.output
    assert "not broken" in done.output  # the number of Lemma 2 itself


def test_falsify_still_refuses_what_has_no_claim_at_all(dpcore, tmp_path):
    spec = tmp_path / "refused.yaml"
    spec.write_text(SPEC.replace("regularization: 0.05", "regularization: 1e-16"))
    assert dpcore("falsify", spec, "--effort", "0.1").exit_code == 3


def test_a_counterexample_of_functions_is_saved_and_replayed(tmp_path):
    case = wrong.BOUNDS["the number of another dataset"]
    (finding,) = falsify(case, Effort(pairs=200))
    finding.counterexample.save(tmp_path / "pair.npz")
    again = load(tmp_path / "pair.npz")
    assert again.replay(case).ratio == pytest.approx(finding.worst, rel=1e-12)
    assert finding.worst > 1


@pytest.mark.slow  # the conformance suite takes seconds for each kernel
def test_the_kit_judges_the_oracles_of_a_plugin():
    made = types.ModuleType("made_up")
    for name, hook in {
        "dpcore_mechanisms": lambda: {
            "made_up.one_scalar": type(wrong.mechanism(wrong.one_scalar)),
        },
    }.items():
        setattr(made, name, hookimpl(hook, specname=name))
    report = examine("made_up", Registry.of(made), Effort(pairs=100, samples=100))
    broken = {v.law.id for v in report.verdicts if v.failed}
    assert broken == {"interactive.event-matches-answers", "interactive.enough-entropy"}


@pytest.mark.slow
def test_the_plugin_of_kernel_ridge_breaks_no_law_and_its_refuted_mechanism_is_broken():
    report = examine("kernel-ridge", Registry.default(), Effort(pairs=800, samples=2000))
    assert report.passed
    (refused,) = [
        v
        for v in report.verdicts
        if v.subject == "kernel_ridge.one_scalar" and "refuses" in v.detail
    ]
    assert "as printed, " in refused.detail
    assert "was certified" in refused.detail
    hold_out = {v.law.id for v in report.verdicts if v.outcome is Outcome.PASSED}
    assert {"bound.holds", "learner.total", "learner.statistic-pure"} < hold_out
