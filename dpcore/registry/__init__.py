"""The registry: which components there are, where they come from, and who admitted them."""
