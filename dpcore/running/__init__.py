"""Running: a priced plan, its conversations with the private side, and what it serves."""
