"""A guarantee says of each query what holds, and one sentence never speaks for all of them."""

import json

import attrs
import numpy as np
import pytest
import yaml

import dpcore
from dpcore.guarantee import Noise, QueryGuarantee, Statistic
from dpcore.published.formats import format_of

from builders import with_queries
from published.make import ARCHIVE

RUNS = ARCHIVE / "runs"
DOMAIN = {"records": 40, "columns": {"a": [-1, 1], "b": [-1, 1]}, "target": [-1, 1]}
EXACT = {
    "name": "exact",
    "learner": {"name": "linear.sufficient_statistics", "features": "identity"},
    "mechanism": "gaussian",
}
FLOATS = {
    "name": "floats",
    "learner": {"name": "random_features.ridge", "features": "identity", "regularization": 0.5},
    "mechanism": {"name": "gaussian", "noise": "float"},
}


def spec_of(*releases):
    return {
        "dpcore": 1,
        "data": {"source": "people.csv", "target": "y", "domain": DOMAIN},
        "adjacency": "replace_one",
        "budget": {"epsilon": 2, "delta": 1e-5},
        "releases": [*releases],
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "s.yaml").write_text(yaml.safe_dump(spec_of(EXACT, FLOATS)))
    random = np.random.default_rng(0)
    table = {name: random.uniform(-1, 1, 40) for name in "aby"}
    return dpcore.run(folder / "s.yaml", table=table, runs=folder / "runs")


def test_exact_and_float_noise_stand_beside_each_other(mixed):
    by_release = {query.release: query for query in mixed.guarantee.basis.queries}
    assert by_release["exact"].noise is Noise.GRID
    assert by_release["exact"].statistic is Statistic.SUM
    assert by_release["exact"].boundary == "each record's contribution"
    assert by_release["floats"].noise is Noise.FLOATS
    assert by_release["floats"].statistic is Statistic.ALLOWANCE
    assert by_release["floats"].allowance > 0
    assert by_release["floats"].boundary == "nowhere"
    paragraph = " ".join(mixed.guarantee.paragraph().split())
    assert "exact.statistics: the noise is sampled exactly on a grid;" in paragraph
    assert "drawn as floating-point numbers;" in paragraph
    assert f"may be off by {by_release['floats'].allowance:.2e} on" in paragraph


def test_the_file_holds_the_same_structure_and_replays(mixed):
    written = json.loads((mixed.kept / "guarantee.json").read_text())
    assert [entry["query"] for entry in written["queries"]] == [
        query.query for query in mixed.guarantee.basis.queries
    ]
    assert written["release_boundary"] == list(mixed.guarantee.provenance.boundary_premises)
    assert dpcore.replay(mixed.folder).guarantee == mixed.guarantee


def test_a_choice_is_no_noise_on_a_grid():
    queries = dpcore.load_run(RUNS / "best-of").guarantee.basis.queries
    assert {query.query for query in queries if query.noise is Noise.CHOICE} == {"choice"}
    assert {query.noise for query in queries} == {Noise.GRID, Noise.CHOICE}


def test_distributions_are_those_of_learner_bound_and_siblings(mixed):
    versions = mixed.guarantee.provenance.distributions
    assert {"dpcore", "dpcore-linear", "dpcore-random-features", "dpcore-models"} <= {*versions}
    assert all(name.startswith("dpcore") for name in versions)
    assert "dpcore-statistics" not in versions
    assert versions.items() <= mixed.lock.versions.items()


def test_queries_of_which_the_same_holds_share_a_sentence(mixed):
    planned_query = mixed.guarantee.basis.queries[0]
    queries = tuple(attrs.evolve(planned_query, query=f"q{number}") for number in range(8))
    one = with_queries(mixed.guarantee, *queries).paragraph()
    assert one.count("sampled exactly on a grid") == 1
    assert "Every query: the noise" in " ".join(one.split())
    several = with_queries(mixed.guarantee, *queries, mixed.guarantee.basis.queries[-1]).paragraph()
    assert "exact.q4 and 3 more: the noise" in " ".join(several.split())


GRID, CHOICE, REAL = Noise
SUM, ALLOWANCE, COMPUTED = Statistic


@pytest.mark.parametrize(
    ("queries", "sampler", "statistic"),
    [
        ([(GRID, SUM, 0.0)], "exact", "the statistic is summed exactly"),
        ([(CHOICE, SUM, 0.0)], "exact", "the statistic is summed exactly"),
        ([(GRID, SUM, 0.0), (REAL, COMPUTED, 0.0)], "real", "taken as computed in real arithmetic"),
        ([(GRID, ALLOWANCE, 1e-9), (GRID, ALLOWANCE, 2e-7)], "exact", "up to 2.00e-07 on either"),
        ([(GRID, SUM, 0.0), (GRID, ALLOWANCE, 1e-9)], "exact", "up to 1.00e-09 on either"),
    ],
)
def test_format_2_keeps_its_one_clause_for_all_queries(mixed, queries, sampler, statistic):
    """What it said is in published folders, and is not reworded."""
    entries = tuple(
        QueryGuarantee(release="r", query=str(number), noise=noise, statistic=kind, allowance=error)
        for number, (noise, kind, error) in enumerate(queries)
    )
    arithmetic = format_of(2).guarantee(with_queries(mixed.guarantee, *entries))["arithmetic"]
    assert arithmetic["sampler"] == sampler
    assert statistic in arithmetic["statistic"]
