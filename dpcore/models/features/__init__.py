"""Feature maps of the core, one per file."""
