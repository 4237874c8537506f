"""The imports against the order of rooms: of the methods by which a plan is run and charged."""

UPWARD = {
    ("dpcore.running.plan", f"dpcore.{name}")
    for name in ("private.run", "ledger.book", "ledger.charge", "ledger.charging")
}
"""Module, and what it imports: when a method is called, or for its types."""
