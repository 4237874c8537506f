"""Wrong components as someone who does not know the conformance suite would write them, and right
ones that look wrong.

All were written before any law or attack was changed on their account: what was caught of them then
says how far attacks reach.
"""

from gallery.entry import reported
from gallery.strangers.choices import CHOICES
from gallery.strangers.maps import FUNCTIONS, MAPS
from gallery.strangers.narrow import NARROW_LEARNERS, NARROW_NOISE, NARROW_OTHERS
from gallery.strangers.noise import NOISE
from gallery.strangers.numbers import ACCOUNTING
from gallery.strangers.right import RIGHT
from gallery.strangers.sums import SUMS

_KINDS = (
    ("learner", (*SUMS, *CHOICES, *NARROW_LEARNERS)),
    ("mechanism", (*NOISE, *NARROW_NOISE)),
    ("accountant", ACCOUNTING),
    ("features", MAPS),
    ("function", FUNCTIONS),
    *((kind, (make,)) for kind, make in NARROW_OTHERS),
)

STRANGERS = tuple(reported(kind, make) for kind, found in _KINDS for make in found)
UNUSUAL = tuple(reported(kind, make) for kind, make in RIGHT)
"""Right ones, of which `wrong` and `right` are the same."""
