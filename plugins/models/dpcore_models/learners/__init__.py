"""Frames of learners that several plugins share."""
