"""Wrong components of kinds that attacks once let pass, and right ones like them."""

from gallery.entry import reported
from gallery.hidden.noise import NOISE, RIGHT
from gallery.hidden.statistics import STATISTICS

_KINDS = (("mechanism", NOISE), ("learner", STATISTICS))

HIDDEN = tuple(reported(kind, make) for kind, entries in _KINDS for make in entries)
UNUSUAL_TOO = tuple(reported("mechanism", make) for make in RIGHT)
