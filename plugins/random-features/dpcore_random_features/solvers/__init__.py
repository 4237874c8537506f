"""Solvers of this plugin, with stated errors."""
