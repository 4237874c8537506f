"""The imports against the order of rooms: what runs, charges, adds or shows when somebody asks."""

UPWARD = {
    *(
        ("dpcore.claims.plan.plan", f"dpcore.{name}")
        for name in (
            *("private.run", "private.function_answers", "private.outcome"),
            *("private.release_context", "private.engines.base", "transcript.replay_process"),
            *("ledger.book", "ledger.charge", "ledger.charging"),
        )
    ),
    *(("dpcore.shown", f"dpcore.views.{name}") for name in ("markup", "notebook")),
    *(("dpcore.summing", f"dpcore.learners.{name}") for name in ("clipping", "sums")),
    ("dpcore.specs.spec", "dpcore.runs.price"),
    ("dpcore.published.files", "dpcore.ledger.book"),
    *(
        (f"dpcore.registry.{name}", "dpcore.private.engines.choice")
        for name in ("hookspecs", "kinds")
    ),
}
"""Module, and what it imports: when a method is called, for its types, or by a name in a table."""
