"""Laws of sources: what is read is what was written."""
