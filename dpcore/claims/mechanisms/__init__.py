"""Mechanisms of the core, one per file."""
