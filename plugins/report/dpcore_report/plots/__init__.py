"""Plots on axes of matplotlib's: of privacy curves, models and ledgers."""
