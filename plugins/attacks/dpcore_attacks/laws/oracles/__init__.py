"""Laws of interactive mechanisms: what an oracle's answers say."""
