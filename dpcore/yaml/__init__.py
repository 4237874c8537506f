"""YAML read by strict rules, with the place of every value."""
