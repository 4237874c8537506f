"""Wrong components that every attack let pass when they were written, and right ones like them."""

from gallery.entry import reported
from gallery.hidden.noise import NOISE, RIGHT

HIDDEN = tuple(reported("mechanism", make) for make in NOISE)
UNUSUAL_TOO = tuple(reported("mechanism", make) for make in RIGHT)
