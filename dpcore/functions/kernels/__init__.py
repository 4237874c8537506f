"""Kernels of the core, one per file."""
