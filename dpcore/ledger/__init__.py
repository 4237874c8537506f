"""The ledger: one budget for everything that is ever released about the same records."""
