"""Every law and attack of dpcore, and one expected value of our own."""

import acme_bins
import numpy as np
from acme_bins.histogram import Histogram

from dpcore import Domain, Public, PublicRandomness, Range, Records
from dpcore.encoding.tables import project_table
from dpcore_attacks.pytest_checks import checks

test_conformance = checks(acme_bins)


def test_sums_and_counts_of_four_records():
    domain = Domain(columns={"hour": Range(0, 24)}, target="m", labels=Range(0, 10), exact=4)
    public = Public(domain=domain, randomness=PublicRandomness(0))
    records = project_table(domain, {"hour": [0, 5, 13, 24], "m": [10, 0, 5, 10]})
    learner = Histogram(bins=2)
    (query,) = learner.queries(public)
    table = learner.statistic(query, records, public, None)
    assert isinstance(records, Records)
    assert np.array_equal(table, [[0, 1], [2, 2]])
