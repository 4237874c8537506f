"""What a model says of columns and pairs, and what of that is out of chance."""
