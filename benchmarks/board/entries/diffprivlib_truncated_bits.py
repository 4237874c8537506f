"""Laplace noise that is cut to a range keeps the binary digits that say its value."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://github.com/IBM/differential-privacy-library/issues/94"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 6_000
PAIR = ([0.0], [1.0])
CONTROL = "the truncated geometric mechanism"


def release(records):
    """A number in a range, with noise of sensitivity 1, as means and sums of the library get it."""
    from diffprivlib.mechanisms import LaplaceTruncated

    mechanism = LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=-50.0, upper=50.0)
    return mechanism.randomise(records[0])


def control(records):
    """The same with integer noise."""
    from diffprivlib.mechanisms import GeometricTruncated

    mechanism = GeometricTruncated(epsilon=1.0, sensitivity=1, lower=-50, upper=50)
    return mechanism.randomise(int(records[0]))
