"""Encoding: cells to numbers and back, for records and for public points alike."""
