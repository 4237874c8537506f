"""approx_bounds raises an exception where a value is infinite or beyond its widest bin."""

LIBRARY, VERSION = "smartnoise-sql", "1.0.1"
_HOSTS = ["numpy==1.26.4", "opendp==0.7.0"]
PINS = [*_HOSTS, "--no-deps smartnoise-sql==1.0.1"]
REFERENCE = "https://github.com/opendp/smartnoise-sdk/issues/574"
FIXED = "1.0.2"
FIXED_ENVIRONMENT = "smartnoise-sql-1.0.2"
FIXED_PINS = [*_HOSTS, "--no-deps smartnoise-sql==1.0.2"]
CLAIM = {"epsilon": 1.0}
RELATION = "add_remove"
DRAWS = 600
_VALUES = [0.5] * 11 + [5.0] * 11  # so few of either that the noise decides
PAIR = (_VALUES, [*_VALUES, float("inf")])
CONTROL = "version 1.0.2"


def _module():
    """The file of the bounds only: the package imports drivers of databases."""
    import importlib.metadata
    import importlib.util

    path = importlib.metadata.distribution("smartnoise-sql").locate_file(
        "snsql/sql/_mechanisms/approx_bounds.py"
    )
    spec = importlib.util.spec_from_file_location("approx_bounds", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def release(records):
    """A lower and an upper bound of all values, or none of either."""
    return list(_module().approx_bounds(records, CLAIM["epsilon"]))
