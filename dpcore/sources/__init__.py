"""Sources: where records come from, one kind a file. They hand records over, computing nothing."""
