"""What is planned: the request, its parts, every query, and what a run needs of the machine."""
