"""Samplers of noise."""
