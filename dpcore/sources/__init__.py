"""Sources: where records come from, one kind a file. Everything here sees records."""
