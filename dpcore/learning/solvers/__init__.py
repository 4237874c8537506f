"""Least-squares solvers with stated errors."""
