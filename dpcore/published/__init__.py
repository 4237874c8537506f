"""Publishing: the lock, the run folder, and the operator's evaluation."""
