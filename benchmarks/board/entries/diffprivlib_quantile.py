"""The weights of a quantile's intervals vanish from 2982 equal records on: it raises."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://github.com/IBM/differential-privacy-library/issues/107"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "add_remove"
DRAWS = 600
PAIR = ([0.0] * 2981, [0.0] * 2982)
CONTROL = "2980 and 2981 records"


def release(records):
    """The median between public bounds."""
    import numpy as np
    from diffprivlib import tools

    return float(tools.quantile(np.array(records), 0.5, epsilon=1.0, bounds=(0.0, 1.0)))


def control(records):
    """The same one record before the edge."""
    return release(records[1:])
