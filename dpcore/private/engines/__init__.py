"""Engines: what holds the records of a run and adds up sums over them, in blocks."""
