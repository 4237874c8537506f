"""A sum of floating-point numbers moves 8192 times as far as the exact sum that noise is for."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://arxiv.org/abs/2207.10635"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 300
LOW, HIGH = 1.0, 1.0 + 2.0**-45
PAIR = ([LOW], [HIGH])  # the first of 2^20 records; `_all` has the others
CONTROL = "records that are all low but the first: the sum moves by less"
_OTHERS = []


def _all(first, high):
    """Blocks of 128 records, each but the first with one high record, where it is asked for."""
    import numpy as np

    if not _OTHERS:
        low = np.full(2**20, LOW)
        ties = low.copy()
        ties[128::128] = HIGH
        _OTHERS.extend([low, ties])
    _OTHERS[high][0] = first
    return _OTHERS[high]


def _sum(records, high):
    from diffprivlib import tools

    exact = float(2**20)
    total = tools.sum(_all(records[0], high), epsilon=1.0, bounds=(LOW, HIGH))
    return (total - exact) / (HIGH - LOW)


def release(records):
    """The sum, in units of what one record may move it by."""
    return _sum(records, 1)


def control(records):
    """The same where no level of the sum is a tie."""
    return _sum(records, 0)
