"""Metrics: what an evaluation tells of predictions on a hold-out, in all and by group."""
