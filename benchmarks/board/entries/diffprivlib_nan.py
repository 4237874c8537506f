"""A record that is NaN passes the clip, and the mean comes out as NaN."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://github.com/IBM/differential-privacy-library/issues/80"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 600
PAIR = ([0.5] * 10, [0.5] * 9 + [float("nan")])
CONTROL = "count_nonzero"


def release(records):
    """A mean between public bounds."""
    import numpy as np
    from diffprivlib import tools

    return float(tools.mean(np.array(records), epsilon=1.0, bounds=(0.0, 1.0)))


def control(records):
    """A count on the same records."""
    import numpy as np
    from diffprivlib import tools

    return int(tools.count_nonzero(np.array(records), epsilon=1.0))
