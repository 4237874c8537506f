"""A group of at most k rows is taken to change by k rows at most, where all may be replaced."""

LIBRARY, VERSION = "opendp", "0.16.0"
PINS = ["opendp==0.16.0", "polars==1.36.1"]
REFERENCE = "https://github.com/opendp/opendp/issues/2945"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
PERSON = 3  # records of one person, all replaced: a symmetric distance of 6
DRAWS = 5_000
PAIR = ([10] * 3, [-10] * 3)
CONTROL = "twice the scale"
_MEASUREMENTS = {}


def _measurement(scale, max_length):
    """The private sum by group, made once."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    schema = {"A": pl.String, "B": pl.Int32}
    query = (
        pl.LazyFrame(schema=schema).group_by("A").agg(pl.col("B").dp.sum((-10, 10), scale=scale))
    )
    domain = dp.with_margin(
        dp.lazyframe_domain(
            [
                dp.series_domain("A", dp.atom_domain(T=str)),
                dp.series_domain("B", dp.atom_domain(T=int)),
            ]
        ),
        dp.polars.Margin(by=["A"], max_groups=1, invariant="keys", max_length=max_length),
    )
    return dp.m.make_private_lazyframe(domain, dp.symmetric_distance(), dp.max_divergence(), query)


def _made(scale, max_length):
    key = scale, max_length
    if key not in _MEASUREMENTS:
        _MEASUREMENTS[key] = _measurement(scale, max_length)
    return _MEASUREMENTS[key]


def claimed(_):
    """Epsilon by the measurement's own map, of 3 records replaced."""
    return _made(30.0, 3).map(6)


def _released(records, scale, max_length):
    import polars as pl

    schema = {"A": pl.String, "B": pl.Int32}
    frame = pl.LazyFrame({"A": ["a"] * len(records), "B": records}, schema=schema)
    return int(_made(scale, max_length)(frame).collect()["B"].item())


def release(records):
    """A sum by group, at a scale for which the map says epsilon 1 at distance 6."""
    return _released(records, 30.0, 3)


def control(records):
    """The same with noise for all 6 rows."""
    return _released(records, 60.0, 3)
