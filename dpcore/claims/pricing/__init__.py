"""Pricing: from what is asked for to a plan with its guarantee; no record is opened."""
