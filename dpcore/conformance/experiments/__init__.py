"""A paper's tables and figures as specs: run as printed, and compared cell by cell."""
