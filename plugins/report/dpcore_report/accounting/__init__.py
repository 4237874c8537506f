"""What a list of events costs: every method, what meets a target, and how it grows."""
