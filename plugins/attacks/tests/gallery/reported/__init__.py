"""Forty wrong components written from bug reports and papers about other libraries.

They measure the conformance suite: none may be left out, and none changed because it is.
"""

from gallery.entry import reported
from gallery.reported.accounting import ACCOUNTING
from gallery.reported.choices import CHOICES
from gallery.reported.functions import FUNCTIONS
from gallery.reported.gradients import GRADIENTS
from gallery.reported.maps import KERNELS, MAPS
from gallery.reported.noise import NOISE
from gallery.reported.sums import SUMS

_KINDS = (
    ("learner", (*SUMS, *GRADIENTS)),
    ("mechanism", (*NOISE, *CHOICES)),
    ("accountant", ACCOUNTING),
    ("features", (*MAPS, *KERNELS)),
    ("function", FUNCTIONS),
)

REPORTED = tuple(reported(kind, make) for kind, found in _KINDS for make in found)
