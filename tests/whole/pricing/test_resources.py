"""A resource price from public facts: refused before anything is priced, opened or spent."""

import time

import pytest

from dpcore.claims.plan.cost_statement import Limits, Resources
from dpcore.errors import ParameterError, ResourceError
from dpcore.resources.cost_estimate import read_memory, read_work
from dpcore.resources.room import machine_memory
from dpcore.specs.spec import spec_of_text

# Budgets of a few records, for very many.
pytestmark = pytest.mark.filterwarnings("ignore:delta = ")

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: {records}
    columns: {{{columns}}}
    target: [-1, 1]
adjacency: {adjacency}
budget: {{epsilon: 2, delta: 1e-5}}
release:
  learner: {learner}
  mechanism: {mechanism}
"""

PROCESS = 85_000_000
"""Bytes of a process that reads a file of a few records: `benchmarks/rooms.py` measures it."""

LARGE = {
    "neurons": {
        "learner": "{name: ntk.central, neurons: 1000000000000}",
        "records": 100, "mechanism": "gaussian",
    },
    "pairs": {
        "learner": "linear.staged_gradient", "records": 30_000, "mechanism": "gaussian",
        "columns": ", ".join(f"c{i}: [-1, 1]" for i in range(800)),
    },
    "records": {
        "learner": "{name: kernel_ridge.ridge, regularization: 0.5, bandwidth: 1.0}",
        "records": 40_000, "mechanism": "gaussian_process",
    },
    "features": {
        "learner": "{name: random_features.ridge, regularization: 0.5, "
        "features: {name: cosines, count: 1000000000}}",
        "records": 100, "mechanism": "gaussian",
    },
}  # fmt: skip


def spec(adjacency="replace_one", columns="a: [-1, 1], b: [-1, 1]", **given):
    return spec_of_text(SPEC.format(adjacency=adjacency, columns=columns, **given), "s.yaml")


@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
def test_what_would_fill_the_memory_is_refused_before_it_is_priced(case):
    import attrs

    asked = spec(**case)
    asked = attrs.evolve(asked, limits=Limits(memory=8 * 10**9))
    began = time.process_time()
    with pytest.raises(ResourceError, match="of memory, the limit is 8 GB; nothing was opened"):
        asked.price()
    assert time.process_time() - began < 5


def test_a_small_run_states_its_price():
    plan = spec(
        learner="{name: random_features.ridge, regularization: 0.5, features: identity}",
        records=40, mechanism="gaussian",
    ).price()  # fmt: skip
    assert PROCESS < plan.resources.memory < PROCESS + 10**6
    assert "of memory in all" in plan.resources.describe()


def test_a_private_count_is_neither_needed_nor_told():
    learner = "{name: random_features.projected_min_norm, features: identity, radius: 250}"
    given = {"adjacency": "add_remove", "learner": learner, "mechanism": "gaussian"}
    plans = [spec(records=records, **given).price() for records in ("private", "{at_most: 90}")]
    assert plans[0].resources.memory < plans[1].resources.memory


def test_an_expected_number_of_records_counts_as_a_limit_does_and_changes_no_price():
    import attrs

    learner = (
        "{name: random_features.ball_ridge, features: identity, radius: 2, total_regularization: 1}"
    )
    given = {"adjacency": "add_remove", "learner": learner, "mechanism": "gaussian"}
    private = spec(records="private", **given)
    randomness = private.price().randomness
    expected = attrs.evolve(private, limits=Limits(expected=10**6))
    limited = spec(records="{at_most: 1000000}", **given)
    plan = expected.price(randomness)
    assert plan.resources == limited.price(randomness).resources
    assert plan.resources.disk >= 10**6 * 3 * 8 > 0 == private.price(randomness).resources.disk
    assert plan.guarantee == private.price(randomness).guarantee
    # A declared number is the better one: what is expected next to it changes nothing.
    both = attrs.evolve(limited, limits=Limits(expected=10))
    assert both.price(randomness).resources == limited.price(randomness).resources


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_what_is_no_number_of_records(count):
    with pytest.raises((ParameterError, TypeError)):
        Limits(expected=count)


def test_seconds_add_up_from_their_counts_whatever_their_size():
    start = Resources().seconds
    assert Resources(passes=1000).seconds > start + 1
    assert Resources(work=10**5000, cells=10**5000).seconds > 10**200


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("500 MB", 5 * 10**8), ("1.5GiB", 3 << 29), ("7", 7), ("2k", 2000)],
)
def test_sizes(text, size):
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["", "-1", "0", "4XB", "GB", "1e9", "nan"])
def test_what_is_no_size(text):
    with pytest.raises(ParameterError, match="--memory"):
        read_memory(text)


def test_the_machine_tells_its_memory():
    assert machine_memory() is None or machine_memory() > 1 << 26


LABORIOUS = {
    "steps": {
        "learner": "{name: linear.clipped_gradient, features: identity, clip: 0.5, "
        "steps: 1000000000}",
        "records": 10**7, "mechanism": "gaussian",
    },
    "passes": {
        "learner": "{name: random_features.min_norm, count: 1000, solver: kaczmarz, "
        "passes: 1000000000}",
        "records": 1000, "mechanism": "gaussian",
    },
    "records": {
        "learner": "{name: kernel_ridge.ridge, regularization: 0.5, bandwidth: 1.0}",
        "records": 10**5, "mechanism": "gaussian_process",
    },
}  # fmt: skip


@pytest.mark.parametrize("case", LABORIOUS.values(), ids=LABORIOUS)
def test_what_would_take_years_is_refused(case):
    import attrs

    asked = spec(**case)
    asked = attrs.evolve(asked, limits=Limits(memory=10**18))
    with pytest.raises(
        ResourceError, match=r"multiplications, the limit is 1e.14; nothing was"
    ) as e:
        asked.price()
    assert e.value.place is not None


def test_work_is_that_of_all_releases_and_every_query():
    """100 steps x 40 records x 2 features and 2 columns, within a factor of 3, twice."""
    learner = "{name: linear.clipped_gradient, features: identity, clip: 0.5}"
    once = spec(learner=learner, records=40, mechanism="gaussian")
    work = once.price().resources.work
    assert 100 * 40 * 4 <= work <= 3 * 100 * 40 * 4
    import attrs

    release = once.request.releases[0]
    twice = attrs.evolve(once.request, releases=(release, attrs.evolve(release, name="again")))
    from dpcore.runs.price import price

    with pytest.raises(ResourceError, match="--work") as caught:
        price(twice, work=work + work // 2)
    assert caught.value.path == "releases.1.learner"
    assert price(twice, work=2 * work).resources.work <= 2 * work


@pytest.mark.parametrize(
    ("text", "count"), [("1e15", 10**15), ("7", 7), ("1.5E3", 1500), ("2.25e+1", 22)]
)
def test_numbers_of_multiplications(text, count):
    assert read_work(text) == count


@pytest.mark.parametrize("text", ["", "-1", "0", "1e", "e5", "1e9999", "nan", "1_0"])
def test_what_is_no_number_of_multiplications(text):
    with pytest.raises(ParameterError, match="--work"):
        read_work(text)
