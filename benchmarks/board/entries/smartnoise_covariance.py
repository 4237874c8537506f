"""The covariance of the records as they came, not of those that were clipped."""

LIBRARY, VERSION = "smartnoise-synth", "1.0.5"
ENVIRONMENT = "smartnoise105"
PINS = ["--no-deps smartnoise-synth==1.0.5", "numpy==1.26.4", "pandas==2.2.3"]
REFERENCE = "https://github.com/opendp/smartnoise-sdk/issues/622"
FIXED = "1.0.6"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 600
PAIR = ([[0.5, 0.5]] * 20, [[0.5, 0.5]] * 19 + [[1e6, 1e6]])
CONTROL = "version 1.0.6"
FIXED_ENVIRONMENT = "smartnoise106"
FIXED_PINS = ["--no-deps smartnoise-synth==1.0.6", "numpy==1.26.4", "pandas==2.2.3"]


def _module():
    """The file of the covariance only: the package imports synthesizers that need torch."""
    import importlib.metadata
    import importlib.util

    path = importlib.metadata.distribution("smartnoise-synth").locate_file(
        "snsynth/models/dp_covariance.py"
    )
    spec = importlib.util.spec_from_file_location("dp_covariance", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def release(records):
    """The published covariances of two columns in a public range."""
    import pandas as pd

    columns = ["x", "y"]
    ranges = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    table = pd.DataFrame(records, columns=columns)
    covariance = _module().DPcovariance(len(records), columns, ranges, 1.0)
    return [float(value) for value in covariance.release(table)]
