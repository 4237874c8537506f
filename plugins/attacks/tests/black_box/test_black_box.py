"""Attacks on functions by their answers only: what falls, and that true claims stand."""

import math
import warnings

import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.errors import ParameterError
from dpcore_attacks import ApproximateDP, GaussianDP, attack
from dpcore_attacks.black_box.words import Refused, Word

ONE = ApproximateDP(epsilon=1.0)
PAIR = [([0, 0, 0], [0, 0, 1])]
MORE = [([0, 0, 0], [0, 0, 0, 1])]


def refuted(release, claim=ONE, neighbours=PAIR, relation=REPLACE_ONE, draws=1000, **options):
    """The report of an attack with a generator, warnings as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = attack(
            release,
            claim,
            neighbours=neighbours,
            relation=relation,
            draws=draws,
            seeded=True,
            **options,
        )
    assert "private" not in report.describe().replace("proof of privacy", "")
    return report.verdict == "refuted"


def raising(records, generator):
    if sum(records):
        raise ValueError("text")
    return 0.0


LEAKS = {
    "a number": lambda records, generator: sum(records),
    "a text": lambda records, generator: f"the sum is {sum(records)}",
    "a truth": lambda records, generator: bool(sum(records)),
    "a refusal": raising,
    "NaN": lambda records, generator: math.nan if sum(records) else generator.normal(),
    "infinity": lambda records, generator: math.inf if sum(records) else -math.inf,
    "a shape": lambda records, generator: generator.normal(size=2 + sum(records)),
    "a length": lambda records, generator: [1.0] * (1 + sum(records)),
    "a key": lambda records, generator: {"ab"[sum(records)]: generator.normal()},
    "a label": lambda records, generator: {"classes": np.array(["a", "b"][: 1 + sum(records)])},
    "nothing": lambda records, generator: None if sum(records) else 0.0,
    "a sign of zero": lambda records, generator: -0.0 if sum(records) else 0.0,
    "low bits": lambda records, generator: sum(records) + generator.laplace(0, 1.0),
    "huge numbers": lambda records, generator: 1e300 * sum(records),
    "a wide integer": lambda records, generator: 10**400 if sum(records) else 0,
    "one of many": lambda records, generator: [
        *generator.normal(size=90),
        sum(records) + 1e-6 * generator.normal(),
        *generator.normal(size=30),
    ],
    "random signs": lambda records, generator: (
        np.arange(6) * sum(records) + generator.laplace(0, 40) * generator.choice([-1.0, 1.0], 6)
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_of_any_kind_is_refuted(leak):
    draws = 6000 if leak == "low bits" else 400
    assert refuted(LEAKS[leak], draws=draws)


def flip(epsilon):
    """Randomised response on whether the last record is 1: exactly epsilon."""

    def release(records, generator):
        keep = generator.random() < math.exp(epsilon) / (1 + math.exp(epsilon))
        return bool(records[-1]) == bool(keep)

    return release


def geometric(epsilon):
    """A sum with two-sided geometric noise: exactly epsilon, on integers."""

    def release(records, generator):
        stop = 1 - math.exp(-epsilon)
        return int(sum(records) + generator.geometric(stop) - generator.geometric(stop))

    return release


def test_randomised_response_is_refuted_above_its_epsilon_and_not_at_it():
    assert refuted(flip(1.3), draws=8_000)
    assert not refuted(flip(1.0), draws=8_000)


def test_geometric_noise_is_refuted_above_its_epsilon_and_not_at_it():
    assert refuted(geometric(1.5), draws=8_000)
    assert not refuted(geometric(1.0), draws=8_000)


def test_a_gaussian_is_refuted_as_one_and_not_by_rounded_digits():
    def release(records, generator):
        return sum(records) + generator.normal()

    claim = GaussianDP(mu=1.0, delta=1e-5)
    assert not refuted(release, claim, draws=5_000, digits=6)
    assert refuted(release, GaussianDP(mu=0.7, delta=1e-5), draws=5_000, digits=6)


def test_the_pair_that_tells_is_searched():
    report = attack(
        LEAKS["a number"],
        ONE,
        neighbours=[([0, 1], [1, 0]), ([0, 0], [0, 0]), ([0, 0], [0, 1])],
        relation=REPLACE_ONE,
        draws=2400,
        seeded=True,
    )
    assert (report.verdict, report.pair, report.draws) == ("refuted", 2, 2400)


def test_a_report_of_a_seeded_function_repeats_exactly():
    reports = [
        attack(
            geometric(1),
            ONE,
            neighbours=PAIR,
            relation=REPLACE_ONE,
            seeded=True,
            seed=seed,
            draws=600,
        )
        for seed in (3, 3, 4)
    ]
    first, again, different = (report.to_dict() for report in reports)
    assert first == again
    assert first["audit"]["hits"] != different["audit"]["hits"]


def test_the_records_of_every_call_are_fresh():
    def release(records):
        records.append(1)
        return len(records)

    report = attack(release, ONE, neighbours=PAIR, relation=REPLACE_ONE, draws=400)
    assert report.verdict == "not refuted"


def test_a_function_that_counts_its_calls_is_not_refuted():
    calls = []

    def release(records):
        calls.append(1)
        return len(calls)

    report = attack(release, ONE, neighbours=PAIR, relation=REPLACE_ONE, draws=2000)
    assert report.verdict == "not refuted"


def test_a_function_that_always_raises_is_not_judged():
    def release(records):
        raise TypeError("secret 12345")

    report = attack(release, ONE, neighbours=PAIR, relation=REPLACE_ONE, draws=400)
    assert (report.verdict, report.exit_code) == ("not judged", 2)
    assert "TypeError" in report.describe()
    assert "12345" not in report.describe()


@pytest.mark.parametrize(
    ("pair", "relation"),
    [
        (([0, 0], [1, 1]), REPLACE_ONE),
        (([0], [0, 0, 0]), ADD_REMOVE),
        (([0, 1], [0, 2, 2]), ADD_REMOVE),
        ((np.zeros((2, 2)), np.ones((2, 2))), REPLACE_ONE),
        (({"x": [1, 2], "y": [1, 2]}, {"x": [2, 2], "y": [1, 3]}), REPLACE_ONE),
        ((([1, 2], [1, 2]), ([2, 2], [1, 3])), REPLACE_ONE),
        (([0, 0], [0, 1]), ADD_REMOVE),
    ],
)
def test_what_are_no_neighbours_is_refused(pair, relation):
    with pytest.raises(ParameterError, match="neighbours under"):
        attack(LEAKS["a number"], ONE, neighbours=[pair], relation=relation, seeded=True)


def test_neighbours_that_differ_in_one_row_are_accepted():
    table = {"x": [1, 2], "y": [1, 2]}
    pairs = [(table, {"x": [1, 2, 2], "y": [1, 2, 3]}), (np.zeros((3, 2)), np.zeros((2, 2)))]
    for pair in pairs:
        report = attack(
            lambda records: len(records), ONE, neighbours=[pair], relation=ADD_REMOVE, draws=400
        )
        assert not [premise for premise in report.premises if "not checked" in premise]


def test_too_few_draws_are_refused_and_the_suggestion_is_enough():
    def run(draws, pairs=1):
        return attack(
            LEAKS["a number"],
            ApproximateDP(epsilon=4),
            neighbours=PAIR * pairs,
            relation=REPLACE_ONE,
            draws=draws,
            seeded=True,
        )

    for pairs in (1, 3):
        with pytest.raises(ParameterError, match="at least about") as error:
            run(300, pairs)
        enough = int(str(error.value).split("about ")[1].split()[0])
        assert run(enough, pairs).verdict == "refuted"


def test_an_answer_of_an_unknown_kind_is_an_error():
    with pytest.raises(ParameterError, match="public"):
        attack(lambda records: object(), ONE, neighbours=PAIR, relation=REPLACE_ONE)


def test_a_pair_must_be_in_a_list():
    with pytest.raises(ParameterError, match="list"):
        attack(len, ONE, neighbours=PAIR[0], relation=REPLACE_ONE)


ANSWERS = [
    *(0.0, -0.0, 1, math.nan, math.inf, "0", b"0", True, None, Refused("0"), [], (), {}, {1}),
    *(10**401, 2**60, 2**60 + 1, np.array([2**60]), np.array([2**60 + 1])),
    *([0], (0,), [[0]], np.zeros(1), np.zeros((1, 1)), np.zeros(0), {"a": 0}, {"b": 0}, [None]),
    *(np.array(["a"]), np.array([True]), np.float32(0), 10**400, [1, "a"], [1, [2]], 0 + 1j),
]


def test_different_answers_are_different_words():
    texts = {Word.of(answer).text() for answer in ANSWERS}
    # A float32 and a float of one value are one number.
    assert len(texts) >= len(ANSWERS) - 1


@pytest.mark.slow
@pytest.mark.parametrize("release", [flip(1.0), geometric(1.0)], ids=["flip", "geometric"])
def test_no_exactly_tight_claim_is_refuted_in_1000_seeded_runs(release):
    assert [seed for seed in range(1000) if refuted(release, draws=800, seed=seed)] == []


@pytest.mark.slow
def test_true_claims_are_refuted_no_more_often_than_the_error_says():
    seeds = range(400)
    alarms = sum(refuted(flip(1.0), draws=400, error=0.2, seed=seed) for seed in seeds)
    # A binomial of 400 at 0.2 is above 112 with probability 5e-5.
    assert alarms <= 112
