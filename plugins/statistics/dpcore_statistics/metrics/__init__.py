"""Metrics of an evaluation beside means, one family per file; their groups are the core's."""
