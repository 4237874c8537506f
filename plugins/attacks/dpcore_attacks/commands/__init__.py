"""The commands test, falsify and audit."""
