"""Of numbers with a long tail: made-up records, and what the noise does to their functions."""
