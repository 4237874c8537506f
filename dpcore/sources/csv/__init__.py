"""CSV files: how one is written, which of its lines are records, and two readers of it."""
