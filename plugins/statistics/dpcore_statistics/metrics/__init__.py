"""Metrics of an evaluation next to means, one family per file; their groups are the core's."""
