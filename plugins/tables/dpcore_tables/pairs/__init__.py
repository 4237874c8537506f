"""Pairs as tables: their cells, and what released sums make of them."""
