"""Laplace noise of floating-point numbers says its value by its last binary digits."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://github.com/IBM/differential-privacy-library/issues/94"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 6_000
PAIR = ([0.0], [1.0])
CONTROL = "the snapping mechanism"


def release(records):
    """A number with noise of sensitivity 1."""
    from diffprivlib.mechanisms import Laplace

    return Laplace(epsilon=1.0, sensitivity=1.0).randomise(records[0])


def control(records):
    """The same with noise that is rounded to a grid."""
    from diffprivlib.mechanisms import Snapping

    return Snapping(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=1.0).randomise(records[0])
