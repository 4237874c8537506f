"""Mechanisms of diffprivlib with equal noise on both neighbours: what they declare, and its bug."""

import warnings

import numpy as np
import pytest

from dpcore import REPLACE_ONE
from dpcore_attacks import ApproximateDP, NoiseCall, attack_with_equal_noise

mechanisms = pytest.importorskip("diffprivlib.mechanisms")
models = pytest.importorskip("diffprivlib.models")

CALLS = [
    NoiseCall(owner=owner, name="randomise", value="value", sensitivity="sensitivity")
    for owner in (mechanisms.Laplace, mechanisms.LaplaceFolded, mechanisms.LaplaceTruncated)
]
ROWS = [(1.0, 0.0)] * 19
PAIR = ([*ROWS, (100.0, 0.0)], [*ROWS, (1.0, 0.0)])


def report_of(low):
    def fit(records):
        table = np.array(records)
        model = models.LinearRegression(
            epsilon=1, bounds_X=(low, 100), bounds_y=(0, 1), fit_intercept=False
        )
        return model.fit(table[:, :1], table[:, 1]).coef_

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attack_with_equal_noise(
            fit, ApproximateDP(epsilon=1.0), neighbours=[PAIR], relation=REPLACE_ONE,
            noise=CALLS, tapes=3,
        )  # fmt: skip


def test_squares_of_features_whose_lower_bound_is_0_declare_that_they_do_not_move():
    """IBM/differential-privacy-library#105: sums of squares move by 100^2 - 1, and declare 0."""
    assert report_of(0).contradictions == (
        "LaplaceFolded.randomise declares 0 in l2, and moved by 9999 (pair 1)",
    )


def test_where_bounds_are_symmetric_nothing_is_contradicted():
    report = report_of(-100)
    assert (report.verdict, report.contradictions) == ("not refuted", ())
    assert report.calls >= 2
