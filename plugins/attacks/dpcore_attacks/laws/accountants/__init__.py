"""Laws of events and accountants."""
