"""Theorems that several plugins share, as plain functions; each file opens with what it proves."""
