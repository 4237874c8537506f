"""Attacks on code of any library: a callable, a claim, and neighbours, judged by samples only."""
