"""Attacks in a report: what was handed over beside the run, and is no part of `public/`."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Attacked:
    """One line about an attack on exactly the plan of the run.

    Args:
        what: Was attacked. effort: How hard. found: What came of it. date: ISO 8601.
        broken: Whether a claim did not hold.
    """

    what: str
    effort: str
    found: str
    date: str
    broken: bool
