"""Runs recorded once, and how to record them again."""
