"""Laws of sensitivity bounds and of sums."""
