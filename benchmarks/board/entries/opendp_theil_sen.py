"""make_pairwise_predict drops the last record of an odd number: one record more moves two."""

LIBRARY, VERSION = "opendp", "0.16.0"
PINS = ["opendp==0.16.0", "polars==1.36.1", "scikit-learn==1.6.1"]
REFERENCE = "https://github.com/opendp/opendp/issues/2950"
FIXED = "open"
CLAIM = {"epsilon": 2.0}
RELATION = "add_remove"
DRAWS = 20_000
_ROWS = [[float(i), 90.0] for i in range(5)] + [[200.0, 1e6]]
PAIR = (_ROWS, [[200.0, -1e6], *_ROWS])
CONTROL = "an odd number of records first: the record more drops none"
_MEASUREMENTS = []


def _measurement():
    import opendp.prelude as dp
    from opendp.extras.sklearn.linear_model import _make_private_theil_sen as make_theil_sen

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
    if not _MEASUREMENTS:
        bounds = (0.0, 100.0)
        _MEASUREMENTS.append(make_theil_sen(dp.max_divergence(), bounds, bounds, scale=1.0))
    return _MEASUREMENTS[0]


def claimed(_):
    """Epsilon by the measurement's own map, of one record more."""
    return _measurement().map(1)


def release(records):
    """What a published Theil-Sen line says at 25 and at 75."""
    import numpy as np

    slope, intercept = _measurement()(np.array(records))
    return [round(float(slope * x + intercept), 6) for x in (25.0, 75.0)]


def control(records):
    """The same with one record more in front of both."""
    return release([[2.5, 90.0], *records])
