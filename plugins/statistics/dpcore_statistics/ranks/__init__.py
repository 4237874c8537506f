"""Ranks: quantiles that follow from noisy counts of the values up to public points."""
