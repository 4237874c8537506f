"""Bounds that several plugins share."""
