"""Sampling: which records, or in what order, an ask sees."""
