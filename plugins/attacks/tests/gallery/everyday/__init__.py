"""Wrong components of everyday making: formulas for something else, and noise made tidy.

All were written before any law or attack was changed on their account.
"""

from gallery.entry import reported
from gallery.everyday.noise import ACCOUNTING, MAPS, NOISE
from gallery.everyday.statistics import STATISTICS

_KINDS = (
    ("learner", STATISTICS),
    ("mechanism", NOISE),
    ("accountant", ACCOUNTING),
    ("features", MAPS),
)

EVERYDAY = tuple(reported(kind, make) for kind, found in _KINDS for make in found)
