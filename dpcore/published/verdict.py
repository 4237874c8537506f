"""`verdict`: what `dpcore-verify`, where it is installed, says of a run folder."""

from pathlib import Path
from typing import Any

import attrs

from dpcore.errors import MissingPluginError
from dpcore.siblings import sibling

_UNCHECKED = (
    "The guarantee was not checked: install dpcore-verify from this repository "
    "(pip install ./plugins/verify in a clone)."
)


@attrs.frozen(kw_only=True)
class Verdict:
    """The checker's verdict, in its words.

    Args:
        status: `confirmed`, `refuted`, `does not follow`, `not checked` or `nothing claimed`.
        sentence: It, and why.
        queries: A line for each query.
    """

    status: str
    sentence: str
    queries: tuple[str, ...] = ()

    @property
    def is_refuted(self) -> bool:
        """Whether the guarantee is false, so that no one should read it."""
        return self.status == "refuted"

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready data."""
        return {"status": self.status, "sentence": self.sentence}


def verdict_of(folder: Path) -> Verdict:
    """Check the files of a run's channel; without the checker, say how to install it."""
    try:
        module = sibling("verify", "__main__", "a verdict")
    except MissingPluginError:
        return Verdict(status="not checked", sentence=_UNCHECKED)
    verdict, (first, *lines), _ = module.checked(folder)
    queries = tuple(lines[: len(verdict.queries)])
    return Verdict(status=verdict.status, sentence=first, queries=queries)
