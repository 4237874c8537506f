"""What a run needs of the machine: memory, disk and work."""
