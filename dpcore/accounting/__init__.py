"""Accounting: what a list of events costs, by every method."""
