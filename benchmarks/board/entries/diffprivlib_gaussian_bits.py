"""Gaussian noise of floating-point numbers says its value by its last binary digits."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://arxiv.org/abs/2207.13793"
FIXED = "open"
CLAIM = {"epsilon": 1.0, "delta": 1e-5}
RELATION = "replace_one"
DRAWS = 6_000
PAIR = ([0.0], [1.0])
CONTROL = "the discrete Gaussian"
_MECHANISMS = {}


def _mechanism(name):
    """A mechanism by name, calibrated once."""
    from diffprivlib import mechanisms

    if name not in _MECHANISMS:
        _MECHANISMS[name] = getattr(mechanisms, name)(epsilon=1.0, delta=1e-5, sensitivity=1)
    return _MECHANISMS[name]


def release(records):
    """A number with noise of sensitivity 1."""
    return _mechanism("GaussianAnalytic").randomise(records[0])


def control(records):
    """The same on integers."""
    return _mechanism("GaussianDiscrete").randomise(int(records[0]))
