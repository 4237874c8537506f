"""What a model says of columns and pairs, and what of that stands out of chance."""
