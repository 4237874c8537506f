"""Laws of engines."""
