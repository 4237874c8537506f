"""Isolation: copies for the private side, and a sealed run's output."""
