"""Rows of the smallest domains and tables: rows, or a refusal before a budget is spent."""

import numpy as np
import pytest

from dpcore import Answer, Categories, Domain, Public, PublicRandomness, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import NormalDistribution
from dpcore_synthetic.learner import Rows

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
SINGLE = {"x": Range(0, 1)}
PAIR = Categories(("u", "v"), default="u")


def public_of(columns, **names):
    return Public(domain=Domain(columns=columns, **names), randomness=PublicRandomness(1), mu=1.0)


def released(learner, public, table):
    """What is published of records, with hardly any noise."""
    records, state = project_table(public.domain, table), learner.start(public)
    while (query := learner.ask(state)) is not None:
        exact = learner.statistic(query, records, public, SECRET).floats()
        answer = Answer(
            query=query, number=1, value=exact + 1e-6, mechanism=Gaussian(),
            noise_distribution=NormalDistribution(width=1e-6),
        )  # fmt: skip
        state = learner.update(state, answer)
    return learner.model(state)


def test_a_domain_without_columns_is_refused():
    with pytest.raises(ParameterError, match="at least one feature column"):
        public_of({})


def test_one_cell_and_a_public_number_of_records_leave_nothing_to_ask():
    with pytest.raises(ParameterError, match="a column of two or more cells"):
        Rows(bins={"x": 1}).queries(public_of(SINGLE, exact=5))


@pytest.mark.parametrize("triples", ["paying", ()])
def test_columns_of_one_cell_get_values_of_their_range(triples):
    columns = {**SINGLE, "h": PAIR, "k": PAIR}
    table = {"x": [0.5] * 40, "h": ["u"] * 40, "k": ["v"] * 40}
    rows = released(Rows(bins={"x": 1}, triples=triples), public_of(columns), table).columns
    assert ((rows["x"] >= 0) & (rows["x"] <= 1)).all()
    assert {*rows["h"]} == {"u"}
    assert {*rows["k"]} == {"v"}
    assert len(rows["x"]) == 40


def test_a_named_triple_with_a_column_of_one_cell_is_its_pair():
    columns = {**SINGLE, "h": PAIR, "k": PAIR}
    table = {"x": [0.5] * 40, "h": ["u", "v"] * 20, "k": ["v", "u"] * 20}
    learner = Rows(bins={"x": 1}, triples=(("x", "h", "k"),))
    published = released(learner, public_of(columns), table)
    triple = published.measured.tables["x-h-k"]
    assert triple.unbiased == pytest.approx(np.array([0, 20, 20, 0]), abs=1e-3)
    counts = zip(published.columns["h"], published.columns["k"], strict=True)
    assert {*counts} == {("u", "v"), ("v", "u")}


def test_fewer_records_than_columns_give_rows_with_triples():
    names = [f"c{number}" for number in range(6)]
    public = public_of(dict.fromkeys(names, PAIR))
    published = released(
        Rows(rows=8, triples=((names[0], names[1], names[2]),)),
        public,
        {name: ["u", "v"] for name in names},
    )
    assert {len(column) for column in published.columns.values()} == {8}
