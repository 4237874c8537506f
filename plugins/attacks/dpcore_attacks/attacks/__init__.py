"""Attacks: the search for neighbours that break a claim."""
