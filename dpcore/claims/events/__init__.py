"""Events: all an accountant may know of a release, one privacy curve per file."""
