"""Specs: from YAML to what is asked for."""
