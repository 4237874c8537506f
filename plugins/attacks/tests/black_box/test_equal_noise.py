"""Both neighbours with equal noise: what differs, what is declared, and what is no verdict."""

import sys
from types import ModuleType

import numpy as np
import pytest

from dpcore import ADD_REMOVE
from dpcore.errors import ParameterError
from dpcore_attacks import ApproximateDP, GaussianDP, NoiseCall, attack_with_equal_noise
from dpcore_attacks.black_box.elsewhere import NoAnswerError

ONE = ApproximateDP(epsilon=1.0)
PAIR = [([1.0, 1.0, 0.0], [1.0, 1.0])]
RNG = np.random.default_rng(7)


def noisy(value, sensitivity, epsilon):
    """Laplace noise of another library."""
    return value + RNG.laplace(scale=sensitivity / epsilon, size=np.shape(value))


class Mechanism:
    """Declares its sensitivity as an attribute, and calls its parent's noise."""

    sensitivity = 1.0

    def randomise(self, value):
        return float(value + RNG.laplace(scale=self.sensitivity))


class Truncated(Mechanism):
    def randomise(self, value):
        return max(0.0, super().randomise(value))


LIBRARY = ModuleType("library")
LIBRARY.noisy = noisy
NOISY = NoiseCall(owner=LIBRARY, name="noisy", value="value", sensitivity="sensitivity")


def judged(release, claim=ONE, noise=(NOISY,), **options):
    return attack_with_equal_noise(
        release, claim, neighbours=PAIR, relation=ADD_REMOVE, noise=noise, tapes=40, **options
    )


def total(records, declared=1.0):
    return float(LIBRARY.noisy(np.sum(records), declared, 1.0))


def test_a_sound_function_is_not_refuted():
    report = judged(total)
    assert (report.verdict, report.exit_code) == ("not refuted", 0)
    # Its value goes to the noise only: equal noise gives equal answers.
    assert (report.differing, report.contradictions) == (0, ())
    assert report.describe().endswith("no proof of privacy.")
    report.check()


def test_a_value_that_moves_farther_than_declared_contradicts_it():
    pair = [([1.0, 3.0], [1.0])]
    report = attack_with_equal_noise(
        total, ONE, neighbours=pair, relation=ADD_REMOVE, noise=[NOISY], tapes=5
    )
    assert report.verdict == "not refuted"
    assert report.exit_code == 1
    assert report.contradictions == ("library.noisy declares 1 in l2, and moved by 3 (pair 1)",)
    with pytest.raises(AssertionError, match="declared too little"):
        report.check()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_number_moved_beyond_any_declaration(value):
    pair = [([1.0, value], [1.0])]
    report = attack_with_equal_noise(
        total, ONE, neighbours=pair, relation=ADD_REMOVE, noise=[NOISY], tapes=2
    )
    assert report.contradictions == (
        f"library.noisy declares 1 in l2, and moved by {value:.6g} (pair 1)",
    )
    same = [([value, 1.0], [value])]
    report = attack_with_equal_noise(
        lambda records: total(records[:1]), ONE, neighbours=same, relation=ADD_REMOVE,
        noise=[NOISY], tapes=2,
    )  # fmt: skip
    assert report.contradictions == ()


def test_a_declaration_that_only_one_neighbour_makes_is_none():
    report = judged(lambda records: total(records, declared=1.0 / len(records)))
    assert "library.noisy declares 0.333333 in l2 for one neighbour only (pair 1)" in (
        report.contradictions
    )


def test_norms_of_vectors_are_those_of_the_declaration():
    def release(records):
        return LIBRARY.noisy(np.array([len(records), len(records)], dtype=float), 1.5, 1.0)

    for distance, expected in (("l1", 1), ("l2", 0), ("linf", 0)):
        call = NoiseCall(
            owner=LIBRARY, name="noisy", value="value", sensitivity="sensitivity", distance=distance
        )
        assert len(judged(release, noise=[call]).contradictions) == expected


@pytest.mark.parametrize("claim", [ONE, GaussianDP(mu=1.0, delta=1e-5)], ids=str)
def test_an_exact_number_beside_the_noise_is_refuted(claim):
    report = judged(lambda records: (len(records), total(records)), claim)
    assert report.verdict == "refuted"
    # 40 of 40 at an error of 1e-4: p of 1e-4 = p^40.
    assert report.least == pytest.approx(1e-4 ** (1 / 40), rel=1e-9)
    assert "a delta of at least 0.7943" in report.describe()
    assert report.to_dict()["least"] == report.least


def test_a_delta_that_allows_it_is_not_refuted():
    rare = ApproximateDP(epsilon=0.0, delta=0.9)
    assert judged(lambda records: (len(records), total(records)), rare).verdict == "not refuted"


def test_noise_that_the_answer_does_not_show_gives_a_candidate_alone():
    """A sum that is added to the noise afterwards is as private as one that is added before."""
    report = judged(
        lambda records: sum(records) + LIBRARY.noisy(0.0, 1.0, 1.0) + 0.5 * len(records)
    )
    assert report.verdict == "not refuted"
    assert report.differing == 40
    assert "no verdict" in report.describe()


def test_noise_that_one_neighbour_alone_shows_gives_no_verdict():
    """Under the first neighbour the answer is the noise itself: it is still sum + noise."""
    pair = [([0.0], [0.0, 1.0])]

    def release(records):
        return sum(records) + float(LIBRARY.noisy(0.0, 1.0, 1.0))

    report = attack_with_equal_noise(
        release, ONE, neighbours=pair, relation=ADD_REMOVE, noise=[NOISY], tapes=40
    )
    assert (report.verdict, report.differing, report.published) == ("not refuted", 40, False)


def test_another_number_of_noise_calls_gives_no_verdict():
    """What is drawn also, and thrown away, reveals nothing."""

    def release(records):
        shown = total(records[:2])
        for _ in records[2:]:
            total(records)
        return shown

    report = judged(release)
    assert (report.verdict, report.published) == ("not refuted", False)


def test_an_answer_without_any_noise_is_refuted():
    report = judged(len)
    assert (report.verdict, report.calls) == ("refuted", 0)


@pytest.mark.parametrize("first", [0, 1], ids=["more calls", "fewer calls"])
def test_noise_of_one_neighbour_alone_gives_no_verdict(first):
    """Its noise is drawn and thrown away, and the function catches whatever that raises."""

    def release(records):
        try:
            value = total(records) if len(records) == 2 else 0.0
        except Exception:
            value = 1.0
        return 0.0 * value + len(records)

    pair = (PAIR[0][first], PAIR[0][1 - first])
    report = attack_with_equal_noise(
        release, ONE, neighbours=[pair], relation=ADD_REMOVE, noise=[NOISY], tapes=40
    )
    assert (report.verdict, report.published) == ("not refuted", False)


def test_an_exception_of_one_neighbour_is_refuted():
    def release(records):
        if len(records) == 2:
            raise ValueError("too few")
        return total(records)

    assert judged(release).verdict == "refuted"


def test_randomness_outside_the_noise_calls_is_not_judged():
    report = judged(lambda records: (total(records), RNG.normal()))
    assert (report.verdict, report.exit_code) == ("not judged", 2)
    assert "outside the noise calls" in report.describe()


def test_a_function_that_changes_its_records_gets_fresh_ones():
    def release(records):
        records.append(1.0)
        return total(records)

    assert judged(release).verdict == "not refuted"


def test_methods_record_the_outer_call_and_read_attributes_of_their_object():
    calls = [
        NoiseCall(owner=kind, name="randomise", value="value", sensitivity="sensitivity")
        for kind in (Mechanism, Truncated)
    ]
    report = judged(lambda records: Truncated().randomise(3.0 * len(records)), noise=calls)
    assert report.calls == 1
    assert report.contradictions == (
        "Truncated.randomise declares 1 in l2, and moved by 3 (pair 1)",
    )
    # What was replaced is there again.
    assert Truncated().randomise(-50.0) == 0.0


def test_wrong_noise_calls_are_refused():
    with pytest.raises(ParameterError, match="a function of the owner"):
        NoiseCall(owner=sys, name="getsizeof")
    with pytest.raises(ParameterError, match="at least one NoiseCall"):
        judged(total, noise=())
    with pytest.raises(ParameterError, match="one of value, sensitivity, epsilon"):
        NoiseCall(owner=LIBRARY, name="noisy", value="nothing")
    wrong = NoiseCall(owner=LIBRARY, name="noisy", value="value", sensitivity="nothing")
    with pytest.raises(NoAnswerError, match="has no 'nothing' that it declares"):
        judged(total, noise=[wrong])
