"""Bridges: dpcore inside other toolkits, and theirs inside dpcore. Each needs its own extra."""
