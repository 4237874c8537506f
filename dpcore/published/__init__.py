"""Run folders: what is written, what is read again, and in which format."""
