"""What a list of events costs: every method has its say, and a wrong event its place."""

import pytest

from dpcore.errors import SpecError
from dpcore_report.accounting.account import account


def test_an_account_states_every_method():
    data = {
        "adjacency": "add_remove",
        "events": [
            {"event": "gaussian", "mu": 0.05, "count": 100},
            {
                "event": "poisson_sampled",
                "sampling_probability": 0.01,
                "of": {"event": "laplace", "shift": 1.0},
                "count": 50,
            },
        ],
    }
    found = account(data, 1e-6)
    assert set(found.intervals) == {"basic", "zcdp", "renyi", "pld"}
    assert found.best == "pld"
    assert found.data()["epsilon"]["upper"] == found.intervals["pld"].upper


@pytest.mark.parametrize(
    ("event", "where"),
    [
        ({"event": "gausian", "mu": 1.0}, "events.0.event"),
        ({"event": "gaussian", "mu": -1.0}, "events.0.mu"),
        ({"event": "gaussian", "sigma": 1.0}, "events.0.sigma"),
        ({"event": "gaussian"}, "events.0.mu"),
        ({"event": "gaussian", "mu": 1.0, "adjacency": "replace_one"}, "events.0.adjacency"),
        ({"mu": 1.0}, "events.0.event"),
        ({"event": "gaussian", "mu": 1.0, "count": 0}, "events.0.count"),
        ({"event": "poisson_sampled", "sampling_probability": 0.1}, "events.0.of"),
    ],
)
def test_a_wrong_event_is_located(event, where):
    with pytest.raises(SpecError) as error:
        account({"adjacency": "add_remove", "events": [event]}, 1e-6)
    assert error.value.where == where
