"""Ways into a run: pricing one on this machine."""
