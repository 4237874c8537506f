"""Learners of the core: what is made of other learners."""
