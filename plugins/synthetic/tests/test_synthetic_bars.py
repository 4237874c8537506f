"""The intervals that are published next to synthetic rows hold as often as they are stated to."""

import itertools
import math

import numpy as np
import pytest

from dpcore import Answer, Categories, Domain, Public, PublicRandomness, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore.interval import NormalDistribution
from dpcore_synthetic.learner import Rows

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
PAIRS = [*itertools.combinations(range(3), 2)]


@pytest.mark.slow
def test_all_bars_of_measured_cells_hold_together_as_often_as_is_stated():
    columns = {"x": Range(0, 8), "g": Categories(("a", "b", "c")), "h": Categories((0, 1))}
    public = Public(domain=Domain(columns=columns), randomness=PublicRandomness(1), mu=1.0)
    rng = np.random.default_rng(7)
    x, g, h = rng.integers(0, 8, 300) + 0.5, rng.integers(0, 3, 300), rng.integers(0, 2, 300)
    table = {"x": x.tolist(), "g": ["abc"[value] for value in g], "h": h.tolist()}
    cells = (x // 2).astype(int), g, h
    sizes, names = (4, 3, 2), ("x", "g", "h")
    expected = {
        "-".join(names[i] for i in places): np.bincount(
            np.ravel_multi_index([cells[i] for i in places], [sizes[i] for i in places]),
            minlength=math.prod(sizes[i] for i in places),
        )
        for places in ((0,), (1,), (2,), *PAIRS)
    }
    learner, draws = Rows(bins={"x": 4}), 2000
    records, covered, together = project_table(public.domain, table), [], 0
    for seed in range(draws):
        state = learner.start(public)
        noise = np.random.default_rng(seed)
        while (query := learner.ask(state)) is not None:
            exact = learner.statistic(query, records, public, SECRET).floats()
            scale = 20.0 if query.name == "count" else 3.0
            answer = Answer(
                query=query, number=1, value=exact + noise.normal(0, scale, exact.shape),
                mechanism=Gaussian(), noise_distribution=NormalDistribution(width=scale),
            )  # fmt: skip
            state = learner.update(state, answer)
        tables = learner._asked(answer.query, public).model(state).tables
        holds = np.concatenate(
            [(tables[name].low <= counts) & (counts <= tables[name].high)
             for name, counts in expected.items()]
        )  # fmt: skip
        covered.append(holds)
        together += bool(holds.all())
    # Three standard deviations below .95, which all intervals together are stated to have.
    assert together / draws >= 0.9335
    assert np.mean(covered, axis=0).min() >= 0.9335
    assert together < draws  # intervals that always hold would be too wide
