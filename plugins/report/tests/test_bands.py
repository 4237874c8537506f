import numpy as np
import pytest

from dpcore.adjacency import ADD_REMOVE
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.errors import SpecError
from dpcore_report.plots.bands import over_delta, over_steps


def test_bands_have_certified_ends():
    data = {
        "adjacency": "add_remove",
        "events": [{"event": "laplace", "noise_multiplier": 10.0, "count": 20}],
    }
    band = over_delta(data, 1e-6)
    assert np.all(band.lower <= band.upper)
    assert np.all(np.diff(band.upper) <= 1e-9)
    rounds = over_steps(data, 1e-6, 5)
    total = AutoAccountant(ADD_REMOVE).compose(LaplaceEvent.of_noise(10.0, ADD_REMOVE), 100)
    assert rounds.upper[-1] == total.epsilon(1e-6).upper
    with pytest.raises(SpecError, match="above 0"):
        over_delta(data, 0.0)
