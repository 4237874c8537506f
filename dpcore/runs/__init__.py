"""Ways in: price a request, run a spec, ask in a session."""
