"""Statistics of two columns of the same records."""
