"""What answers at both ends of a conversation fix: the mean label, and the last look."""
