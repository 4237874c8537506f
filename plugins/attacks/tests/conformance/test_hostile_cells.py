"""The cells that the laws put next to a record are values that every numpy still takes."""

import numpy as np

from dpcore_attacks.laws.learners.cells import HOSTILE


def test_every_time_among_the_hostile_cells_has_a_unit():
    times = [cell for cell in HOSTILE if isinstance(cell, np.datetime64 | np.timedelta64)]
    assert times
    assert all(np.datetime_data(time.dtype)[0] != "generic" for time in times)
