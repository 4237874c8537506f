"""The imports against the order of rooms: of what is run, charged or shown when somebody asks."""

UPWARD = {
    ("dpcore.running.plan", f"dpcore.{name}")
    for name in ("private.run", "ledger.book", "ledger.charge", "ledger.charging")
} | {("dpcore.shown", f"dpcore.views.{name}") for name in ("markup", "notebook")}
"""Module, and what it imports: when a method is called, or for its types."""
