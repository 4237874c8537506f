"""Steps of classes by the curvature that the loss has where a descent is."""

import attrs
import numpy as np
import pytest

import dpcore_tables.plan
from dpcore import Domain, Public, PublicRandomness, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.transcript.replay_process import HERE
from dpcore_tables.class_steps import curved
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout
from dpcore_tables.metric import Metric
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.residuals import UNCLIPPED
from dpcore_tables.shape_functions import ShapeFunctions

from builders import price_learner

LAYOUT = Layout(levels=(0, 2), starts=(0, 1))
RANKS = Ranks.of(np.zeros(1), np.full(1, 0.2), usual_proportions(1))
DICTIONARY = Dictionary.of(LAYOUT, RANKS, [(term, 1.0) for term in LAYOUT.once()])
BASIS = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
KNOWN = np.array([200.0, 90.0, 60.0])
LOSS = 0.05 * (BASIS * KNOWN) @ BASIS.T
NOISE, FLATTER = 3.0, 0.1


def descent_of(outputs=1):
    """Twenty steps, of which fewer are taken, so that no prior is learned."""
    metric = Metric(basis=BASIS, known=KNOWN, damping=np.full(3, 5.0), curvature=0.25)
    return Descent.start(DICTIONARY, metric, 20, np.zeros((3, outputs)), variance=30.0)


def walked(descent, goal, noises, flatter=FLATTER):
    """Over a loss that is curved by a fifth of what the metric says, and flatter from step 4 on."""
    for place, noise in enumerate(noises):
        if place == 4:
            descent = descent.rescaled(flatter)
        gradient = LOSS @ (descent.weights - goal) + NOISE * noise
        descent = descent.after(gradient, NOISE, 1.0, 0.5, UNCLIPPED)
    return descent


def test_steps_before_count_as_if_they_had_been_asked_by_the_new_curvature():
    goal = np.random.default_rng(1).normal(size=(3, 2))
    descent = walked(descent_of(2), goal, np.zeros((9, 3, 2)))
    for step in descent.steps:
        pull = LOSS @ (step.weights - goal)
        assert step.target == pytest.approx(descent.metric.damped @ step.weights - pull)
    assert [step.curvature for step in descent.steps] == [0.25] * 4 + [FLATTER] * 5


def test_a_flatter_metric_arrives_where_a_steep_one_does_not():
    goal, noises = np.array([[1.0], [-2.0], [3.0]]), np.zeros((12, 3, 1))
    near, outer = (walked(descent_of(), goal, noises, flatter) for flatter in (FLATTER, 0.25))
    missing = [np.linalg.norm(descent.weights - goal) for descent in (near, outer)]
    assert missing[0] < 0.6 * missing[1]


def test_the_noise_of_steps_by_several_curvatures_is_that_of_redrawn_ones():
    """250 walks: a standard deviation errs by 4.5 %, that of 2000 paths by 1.6 %."""
    rng = np.random.default_rng(2)
    ends = [
        walked(descent_of(), np.ones((3, 1)), rng.standard_normal((9, 3, 1))) for _ in range(250)
    ]
    actual = np.cov(np.array([end.weights[:, 0] for end in ends]).T)
    movements = ends[0].movements(np.random.default_rng(3), np.zeros((3, 2000)), LOSS)
    claimed = movements @ movements.T / 2000
    assert np.trace(claimed) == pytest.approx(np.trace(actual), rel=0.2)
    roots = [np.sqrt(np.diag(matrix)) for matrix in (claimed, actual)]
    assert roots[0] == pytest.approx(roots[1], rel=0.2)


def facts(labels, count):
    columns = {name: Range(-1, 1) for name in "abcd"}
    return Domain(columns=columns, target="y", labels=labels, exact=count)


@pytest.mark.parametrize(
    ("labels", "count", "edition", "flattest"),
    [
        (Classes(("n", "y")), 4000, 2, 1.0),
        (Classes(("n", "y")), 20_000, 2, 1300 / 5400),
        (Classes(("p", "q", "r")), 20_000, 2, 1300 / 5400),
        (Classes(("p", "q", "r")), 400_000, 2, 0.05),
        (Classes(("p", "q", "r")), 400_000, 1, 1.0),
        (Range(0, 1), 400_000, 2, 1.0),
    ],
)
def test_steps_become_longer_only_where_there_is_signal(labels, count, edition, flattest):
    public = Public(domain=facts(labels, count), randomness=PublicRandomness(1), mu=0.27)
    assert Plan.of(public, None, edition=edition).flattest == pytest.approx(flattest)


def test_the_fit_alone_takes_the_curvature_anew_and_never_a_larger_one():
    facts_of = facts(Classes(("n", "y")), 20_000)
    plan = Plan.of(Public(domain=facts_of, randomness=PublicRandomness(1), mu=0.27), None)
    descent, model = descent_of(), ("fit", np.zeros(1), np.array([0.3]))
    unclear = curved(descent, plan, *model)
    clear = curved(attrs.evolve(descent, weights=np.full((3, 1), 60.0)), plan, *model)
    assert clear.metric.curvature == pytest.approx(0.25 * plan.flattest)
    assert clear.metric.curvature < unclear.metric.curvature <= 0.25
    later = attrs.evolve(clear, steps=walked(descent, np.zeros((3, 1)), np.zeros((1, 3, 1))).steps)
    assert curved(later, plan, *model) is later
    assert curved(descent, plan, "screen", *model[1:]) is descent


@pytest.mark.slow
def test_classes_that_are_easy_to_tell_are_told(monkeypatch):
    """Cut from one score with little noise: with short steps probabilities stay too cautious."""
    rng, values = np.random.default_rng(3), ("p", "q", "r", "s")
    x = rng.uniform(-1, 1, (9000, 4))
    score = np.sin(3 * x[:, 0]) + x[:, 1] + 0.05 * rng.normal(size=len(x))
    codes = np.digitize(score, [-0.8, 0.0, 0.8])
    table = {**dict(zip("abcd", x.T, strict=True)), "y": np.array(values)[codes]}
    parts = (slice(7000), slice(7000, None))
    train, test = ({name: column[part] for name, column in table.items()} for part in parts)
    plan = price_learner(
        ShapeFunctions(),
        domain=facts(Classes(values), 7000),
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
        epsilon=4,
    )
    losses = []
    for flattest in (0.05, 1.0):
        monkeypatch.setattr(dpcore_tables.plan, "_FLATTEST", flattest)
        randomness = SecretRandomness.rehearsal(3)
        likely = plan.run(train, replaying=HERE, secret=randomness).model.probabilities(test)
        likely = likely[np.arange(len(likely)), codes[parts[1]]]
        losses.append(-float(np.mean(np.log(likely))))
    assert losses[0] < 0.9 * losses[1], losses
