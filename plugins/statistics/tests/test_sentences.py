"""What `check --explain` says of a statistic's sums."""

from dpcore import REPLACE_ONE, Categories, Domain, PrivacyBudget, Release
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.domain.domain import People
from dpcore.published.phrases import describe_proofs
from dpcore_statistics.histogram import Histogram

from builders import price_request


def test_what_a_replaced_persons_records_move_is_never_understated():
    # One of 5 records that changes its group moves two counts: 2 in l1, and 10 in all.
    relation = REPLACE_ONE.of_persons(5)
    plan = price_request(
        domain=Domain(
            columns={"sex": Categories(("F", "M"))},
            exact=None,
            limit=100,
            people=People(column="id", records=5),
        ),
        adjacency=relation,
        budget=PrivacyBudget(epsilon=1.0),
        releases=[Release(learner=Histogram(column="sex"), mechanism=Laplace())],
    )
    (sentence,) = describe_proofs(plan.schedule.releases[0], relation)
    assert "each moves the sum by at most 2, so together by at most 10" in sentence
