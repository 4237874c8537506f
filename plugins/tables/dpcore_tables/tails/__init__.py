"""Of numbers with a long tail: synthetic records, and what the noise does to their functions."""
