"""The imports against the order of rooms: what runs, charges, adds or shows when somebody asks."""

UPWARD = {
    ("dpcore.running.plan", f"dpcore.{name}")
    for name in (
        "private.run",
        "private.function_answers",
        "ledger.book",
        "ledger.charge",
        "ledger.charging",
    )
} | {("dpcore.shown", f"dpcore.views.{name}") for name in ("markup", "notebook")}
UPWARD |= {("dpcore.summing", f"dpcore.learning.learners.{name}") for name in ("clipping", "sums")}
"""Module, and what it imports: when a method is called, or for its types."""
