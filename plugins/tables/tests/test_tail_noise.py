"""Standard errors in tails: what other noise would have made of the functions of such numbers."""

import attrs
import numpy as np
import pytest

from dpcore import Answer, Categories, Domain, Public, PublicRandomness, Range
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import encode_table
from dpcore.learners.bounds.sum import moved_by_sum
from dpcore.records import Records
from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.layout import Layout, Term
from dpcore_tables.ranks import BINS, Ranks
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.effects import encode_points
from dpcore_tables.shapes.fit_noise import noise_covariance
from dpcore_tables.sums import BLOCK
from dpcore_tables.tails.records import BODY, TAIL, tailed_records
from dpcore_tables.tails.replay import Noise, TailReplay, Walk

LOW, HIGH = -5.0, 200.0


def table_of(count, seed=0):
    """A lognormal column, which the label follows to the end."""
    rng = np.random.default_rng(seed)
    x = np.minimum(np.exp(1.5 * rng.standard_normal(count)), HIGH)
    return {"x": x, "y": np.clip(x + rng.standard_normal(count), LOW, HIGH)}


def domain_of(count, labels=None, **columns):
    columns = {"x": Range(0, HIGH), **columns}
    return Domain(columns=columns, target="y", labels=labels or Range(LOW, HIGH), exact=count)


class Laboratory:
    """The learner's conversation on one table, with noise that a test draws, or none."""

    def __init__(self, table, mu, domain=None, **fields):
        count = len(table["y"])
        self.domain = domain or domain_of(count)
        self.learner = ShapeFunctions(**fields)
        self.public = Public(domain=self.domain, randomness=PublicRandomness(1), mu=mu)
        features = encode_table(self.domain, table)
        labels = table["y"] - (LOW + HIGH) / 2
        self.blocks = [
            Records(features=features[i : i + BLOCK], labels=labels[i : i + BLOCK])
            for i in range(0, count, BLOCK)
        ]

    def model(self, rng=None):
        state, queries = self.learner.start(self.public), 0
        while (query := self.learner.ask(state)) is not None:
            sums = [self.learner.partial(query, block, self.public) for block in self.blocks]
            value = sum(part.floats() for part in sums)
            multiplier = np.sqrt(query.at_most / query.share) / self.public.mu
            if rng is not None:
                deviation = multiplier * moved_by_sum(query).replace_one
                value = value + deviation * rng.standard_normal(value.shape)
            queries += 1
            mechanism = Gaussian(noise_multiplier=float(multiplier))
            answer = Answer(query=query, number=queries, value=value, mechanism=mechanism)
            state = self.learner.update(state, answer)
        return self.learner.model(state)


@pytest.fixture(scope="module")
def released():
    """2000 records at so large a budget that their tail is shown."""
    laboratory = Laboratory(table_of(2000), 4.0)
    return laboratory, laboratory.model(np.random.default_rng(1))


def test_made_up_records_have_the_released_variance_shares_and_number():
    proportions = np.full(BINS, 0.4 / 21)
    proportions[-1], proportions[8], proportions[0] = 0.03, 0.55, 0.02
    ranks = Ranks.of(np.array([-0.4, 0.1]), np.array([0.004, 0.01]), np.tile(proportions, (2, 1)))
    layout = Layout.of(domain_of(1000, z=Range(0, 1)))
    terms = [(Term(0, 0), 1.0), (Term(1, 0), 1.0)]
    dictionary, tails = Dictionary.of(layout, ranks, terms), [(0, True), (0, False), (1, True)]
    # The variances that tails of a Pareto law of index 2 would have, by a million distances.
    edges = np.linspace(-1.5, 1.5, BINS + 1)
    expected = []
    for number, width in enumerate(ranks.widths):
        mass = ranks.plain_fractions[number]
        sides = [above for owner, above in tails if owner == number]
        inside = [b for b in range(BINS) if b not in [BINS - 1 if above else 0 for above in sides]]
        middles = (edges[:-1] + edges[1:]) / 2 * width
        total = np.sum((mass * middles**2)[inside])
        for above in sides:
            start, end = ranks.tail(number, above)
            begin = (edges[-2] / 1.5) * start
            uniform = (np.arange(10**5) + 0.5) / 10**5
            squares = begin**2 / (1 - uniform * (1 - (begin / end) ** 2))
            total += mass[BINS - 1 if above else 0] * np.mean(squares)
        expected.append(total)
    encoded, counts = tailed_records(dictionary, np.array(expected), tails, 9.0, 1e-9, 1000.0)
    assert len(encoded) == BODY + 3 * TAIL
    assert counts.sum() == pytest.approx(1000)
    assert np.abs(encoded).max() <= 1
    distances = encoded - ranks.means
    for number, value in enumerate(expected):
        mine = distances[:, number]
        assert np.sum(counts * mine**2) / 1000 == pytest.approx(value, rel=0.1)
    first = ranks.tail(0, True)[0] * edges[-2] / 1.5
    assert np.sum(counts[distances[:, 0] > first]) == pytest.approx(
        1000 * ranks.plain_fractions[0, -1], rel=1e-6
    )
    assert np.abs(distances[:BODY, 0]).max() <= first + 1e-12


def test_a_column_of_zeros_is_made_up_of_zeros():
    proportions = np.full(BINS, 0.05 / 22)
    proportions[-1], proportions[11] = 0.05, 0.9
    ranks = Ranks.of(np.array([-0.99]), np.array([0.01]), proportions[None])
    dictionary = Dictionary.of(Layout.of(domain_of(1000)), ranks, [(Term(0, 0), 1.0)])
    encoded, counts = tailed_records(dictionary, np.full(1, 0.01), [(0, True)], 0.15, 1e-4, 1000.0)
    zeros = 1000 * ranks.plain_fractions[0, 11]
    assert np.sum(counts[encoded[:, 0] == -1.0]) == pytest.approx(zeros, rel=0.02)


def replay_of(model):
    state = model.state
    return TailReplay(
        plan=state.plan,
        records=state.records,
        offset=float(state.offset[0]),
        variances=state.variances,
        screened=state.screened,
        descent=state.descent,
        residuals=state.residuals,
        prior=state.prior_variance,
        unit=state.unit,
        noises=state.noises,
    )


def walk_on(model, table, laboratory):
    """On a table itself: every record represents itself."""
    encoded = np.concatenate([np.asarray(block.features) for block in laboratory.blocks])
    labels = (table["y"] - LOW) / (HIGH - LOW)
    counts = np.ones(len(labels))
    return Walk(
        replay=replay_of(model), columns=(0,), encoded=encoded, counts=counts, labels=labels
    )


@pytest.mark.parametrize("other", [False, True])
def test_a_walk_without_noise_is_the_learners_own_conversation(other):
    """On the table itself, where no answer has noise: all rules are the learner's, to rounding."""
    table = table_of(1500)
    columns = {"c": Categories(("n", "y"))} if other else {}
    if other:
        table["c"] = np.random.default_rng(2).choice(["n", "y"], 1500)
    laboratory = Laboratory(table, 4.0, domain=domain_of(1500, **columns))
    model = laboratory.model()
    walk = walk_on(model, table, laboratory)
    ended, weights = walk.end(Noise(None))
    members = [tuple(term) in set(map(tuple, ended.terms)) for term in model.dictionary.terms]
    assert sum(members) >= 17
    # The descent's: what the last look makes of them is known, and no walk needs it.
    expected = model.state.descent.weights[np.append(True, members), 0]
    # Another column's functions stay in the blocks of the metric, which changes steps and no end.
    near = 0.05 * np.abs(expected).max() if other else 1e-4
    assert weights == pytest.approx(expected, abs=near)


def test_ranks_of_a_path_are_those_of_moments_with_their_noise():
    """400 draws: a deviation errs by 4 %. Bins without noise are counted again by brute force."""
    table = table_of(1500)
    laboratory = Laboratory(table, 4.0)
    model = laboratory.model()
    walk = walk_on(model, table, laboratory)
    noises = {**walk.replay.noises, "bins": 1e-9}
    walk = attrs.evolve(walk, replay=attrs.evolve(walk.replay, noises=noises))
    drawn = [walk.draw_ranks(Noise(seed)) for seed in range(400)]
    means = np.array([ranks.means[0] for ranks in drawn])
    variances = np.array([ranks.widths[0] ** 2 / 4 for ranks in drawn])
    for values, name, centre in (
        (means, "means", model.dictionary.ranks.means[0]),
        (variances, "squares", model.state.variances[0]),
    ):
        deviation = noises[name] / 1500
        assert np.mean(values) == pytest.approx(centre, abs=0.2 * deviation)
        assert np.std(values) == pytest.approx(deviation, rel=0.15)
    x = walk.encoded[:, 0]
    for ranks in drawn[:5]:
        z = np.clip((x - ranks.means[0]) / ranks.widths[0], -1.5, 1.5)
        counts = np.histogram(z, np.linspace(-1.5, 1.5, BINS + 1))[0]
        expected = (counts / 1500 + 0.05 / BINS) / 1.05
        # Released shares are shrunk towards usual ones by the noise that they had.
        assert ranks.shares[0] == pytest.approx(expected, abs=1e-3)


def test_what_paths_add_is_their_variance_less_what_was_counted(released):
    _, model = released
    table = {"x": np.array([0.5, 3.0, 40.0, 190.0]), "y": np.zeros(4)}
    encoded = encode_table(model.domain, table)
    rows, deviation, tails = model.dictionary.rows(encoded), model.deviation, model.tails
    for place in range(4):
        counted, scores = 0.0, []
        mine = np.flatnonzero(tails.members)
        for i in mine:
            for j in mine:
                counted += rows[i, place] * deviation[i, j] * rows[j, place]
        for single, weights in tails.ends:
            values = single.values(encoded[[place]])[:, 0]
            score = INTERCEPT * weights[0]
            for value, size, weight in zip(values, single.sizes, weights[1:], strict=True):
                score += value * size * weight
            scores.append(score * rows[0, place] / INTERCEPT)
        z = (encoded[place, 0] - model.dictionary.ranks.means[0]) / model.dictionary.ranks.widths[0]
        wider = 1.2**2 if abs(z) >= 1 else 1.0
        added = max(wider * np.var(scores, ddof=1) - counted, 0.0) * min(2 * abs(z), 1) ** 2
        whole = rows[:, place] @ deviation @ rows[:, place] + added
        claimed = model.standard_errors({"x": table["x"][[place]]})[0]
        assert claimed == pytest.approx((HIGH - LOW) * np.sqrt(whole))
    before = (HIGH - LOW) * np.sqrt(np.einsum("in,ij,jn->n", rows, deviation, rows))
    assert np.all(model.standard_errors(table) >= before)
    assert model.standard_errors(table)[3] > 1.2 * before[3]


def test_bands_of_a_tail_follow_and_published_arrays_do_not(released):
    """Curves of the paths, centred by released shares, where all of their spread is added."""
    _, model = released
    (shape,) = [shape for shape in model.shapes() if shape.columns == ("x",)]
    encoded = encode_points(model.domain, 0, shape.at[0])
    ranks, curves = model.dictionary.ranks, []
    z = (encoded[:, 0] - ranks.means[0]) / ranks.widths[0]
    inside = np.abs(z) <= 1.5
    bins = np.clip(((z + 1.5) * 8).astype(int), 0, BINS - 1)
    frequencies = np.where(inside, ranks.shares[0][bins], 0.0)
    for single, weights in model.tails.ends:
        values = (weights[1:] * single.sizes) @ single.values(encoded)
        curves.append((HIGH - LOW) * (values - values @ frequencies / frequencies.sum()))
    deviation = np.std(curves, axis=0, ddof=1)
    distance = 2 * np.abs(z) >= 2
    assert shape.band[distance] == pytest.approx(2 * 1.2 * deviation[distance], rel=0.05)
    assert np.all(shape.joint_band[distance] > 0.9 * shape.band[distance])
    state = model.state
    single = state.calibration.moved(noise_covariance(state), state.descent.weights)
    assert np.array_equal(model.arrays()["spread"], single)


def test_tables_without_tails_and_classes_are_not_walked_again():
    rng = np.random.default_rng(0)
    even = {"x": rng.uniform(0, HIGH, 1500)}
    even["y"] = np.clip(even["x"], LOW, HIGH)
    model = Laboratory(even, 4.0).model(rng)
    assert model.tails is None
    assert attrs.evolve(model, kind="two").tails is None
    monotone = Laboratory(table_of(1500), 4.0, monotone={"x": "up"}).model(rng)
    assert monotone.tails is None


NOISY = (
    "means squares bins screen.metric screen.gradient screen.residuals fit.metric fit.gradient "
    "fit.residuals"
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISY.split())
def test_the_noise_of_every_answer_is_in_the_paths(released, name):
    _, model = released
    replay = replay_of(model)
    encoded = encode_table(model.domain, {"x": np.array([30.0, 100.0])})
    rows, none = model.dictionary.rows(encoded), np.zeros_like(model.deviation)

    def variance(factors):
        noises = {key: value * factors.get(key, 1e-4) for key, value in replay.noises.items()}
        paths = attrs.evolve(replay, noises=noises).paths()
        return float(np.mean(paths.variances(encoded, rows, none)))

    assert variance({name: 1.0}) > 5 * variance({})


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.26805, 0.92998])  # of epsilon 1 and 4 at delta 1e-5
def test_standard_errors_in_a_tail_are_those_of_redrawn_noise(mu):
    """40 fits, of which ten make claims: their spread errs by 11 % and more, with long tails."""
    laboratory, rng = Laboratory(table_of(20_000), mu), np.random.default_rng(3)
    body = table_of(300, seed=9)["x"]
    places = {"body": body[body < 10], "near": [30.0, 45.0], "far": [100.0, 150.0]}
    models = [laboratory.model(rng) for _ in range(40)]
    for name, low, high in (("body", 0.75, 1.2), ("near", 0.6, 1.7), ("far", 0.6, 1.7)):
        table = {"x": np.array(places[name])}
        encoded = encode_table(models[0].domain, table)
        scores = [(HIGH - LOW) * model.outputs(encoded)[:, 0] for model in models]
        measured = np.sqrt(np.mean(np.var(scores, axis=0, ddof=1)))
        claimed = np.sqrt(np.mean([m.standard_errors(table) ** 2 for m in models[:10]]))
        assert low < claimed / measured < high, name
