"""Bounds of the core: conversions between adjacencies, asked for by name and never silent."""
