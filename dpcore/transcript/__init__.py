"""The public half of a run: queries in order, and what follows from released answers."""
