"""Wrong components written after the attacks that the other two sets had led to, unlike those.

They measure how far attacks reach beyond what they were made for.
"""

from gallery.entry import reported
from gallery.unlike.noise import NOISE
from gallery.unlike.others import ACCOUNTING, MAPS
from gallery.unlike.statistics import FUNCTIONS, STATISTICS

_KINDS = (
    ("learner", STATISTICS),
    ("mechanism", NOISE),
    ("accountant", ACCOUNTING),
    ("features", MAPS),
    ("function", FUNCTIONS),
)

UNLIKE = tuple(reported(kind, make) for kind, found in _KINDS for make in found)
