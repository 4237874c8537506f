"""What is planned: the request, its parts, every ask, and what a run needs of the machine."""
