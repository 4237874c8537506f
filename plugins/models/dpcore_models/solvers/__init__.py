"""Least-squares solvers with stated errors, which several plugins share."""
