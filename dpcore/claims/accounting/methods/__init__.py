"""Accountants of the core, one privacy notion per file."""
