"""A way in: from the names of a file's columns to a spec whose gaps are marked."""
