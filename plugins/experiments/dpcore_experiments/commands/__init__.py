"""The commands reproduce and theory."""
