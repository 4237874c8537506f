"""What engines on clusters share: versions that must agree, shares of parts, and errors in words
that quote no record."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from typing import Any

from dpcore.domain.domain import Domain
from dpcore.errors import EngineError, MisfitError, RequestError, SourceError, need
from dpcore.records.source import Part
from dpcore_engines.bundle import Failure

PLUGINS = "dpcore.plugins"
_ALWAYS = ("dpcore", "numpy")
STAYED = (
    "the source is read once, is grouped by persons, or lies in this process's memory: its records "
    "stayed in this process and were not sent to the cluster"
)


def versions(names: Sequence[str]) -> dict[str, str]:
    """What a process would compute with: Python, and distributions; "" where one is missing."""
    by_name = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in names:
        try:
            by_name[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            by_name[name] = ""
    try:
        # Whether it is there counts, and not which version.
        from cryptography.hazmat.primitives.ciphers import Cipher  # noqa: F401

        by_name["cryptography"] = "there"  # its words are the same in every version
    except ImportError:
        by_name["cryptography"] = ""
    return by_name


def distributions() -> tuple[str, ...]:
    """Whose versions must agree: dpcore, numpy, and plugins that this process has imported."""
    plugins = {
        point.dist.name
        for point in metadata.entry_points(group=PLUGINS)
        if point.dist is not None and point.module in sys.modules
    }
    return tuple(sorted({*_ALWAYS, *plugins}))


def require_same_versions(own_versions: Mapping[str, str], replies: Sequence[Any]) -> None:
    """Compare what workers answer with this process's own versions.

    Raises:
        RequestError: a worker has another version or none, or cryptography is missing here.
    """
    need(
        own_versions["cryptography"],
        RequestError,
        "workers need cryptography, by which secret words travel: pip install cryptography",
    )
    for reply in replies:
        # A worker's error comes back in the place of its answer.
        need(
            isinstance(reply, Mapping),
            RequestError,
            "a worker cannot import dpcore_engines: install what is installed here there",
        )
        for name, version in own_versions.items():
            need(
                reply.get(name) == version,
                RequestError,
                f"{name} is {version} here and {reply.get(name) or 'missing'} on a worker: "
                "install the same there; no record was opened",
            )


def refuse_zones(domain: Domain) -> None:
    """Raise `RequestError` at a column with a zone, whose rules workers may not share."""
    for name, dates in domain.dates.items():
        need(
            dates.zone is None,
            RequestError,
            f"column {name!r} is read in {dates.zone}, and workers may have other rules of that "
            f"zone: use the local engine",
        )


def cut_shares(parts: Sequence[Part], count: int) -> list[tuple[Part, ...]]:
    """Parts in their order, cut into so many pieces of nearly equal length."""
    cuts = [len(parts) * number // count for number in range(count + 1)]
    return [tuple(parts[a:b]) for a, b in pairwise(cuts)]


def read_error(failure: Failure, before: int) -> SourceError:
    """What a worker could not read, as the local engine says it.

    Args:
        failure: What the worker answered.
        before: How many parts of the source are before the worker's first.
    """
    if failure.misfit is None:
        return SourceError(
            f"a worker cannot read its parts ({failure.told}): it needs the same files, under the "
            "same names"
        )
    column, rule, part, row = failure.misfit
    # The part's number within the bundle, plus all parts before it.
    return MisfitError(column, row, rule).after(0, before + part)


# By the names of errors, the clusters' own among them, in words that an operator can act on.
_REASONS = {
    "KilledWorker": "workers were lost again and again: they may need more memory",
    "NoWorkerLeftError": "no worker is left",
    "IdleError": "workers were lost or are out of memory, and no other takes their work",
    "NoAnswerError": "a worker does not answer, or dies whenever it is asked",
}


@contextlib.contextmanager
def reword_errors(action: str, kind: type[RequestError] | type[EngineError]) -> Iterator[None]:
    """Errors of a cluster hold keys, arguments and traces: their types alone are told.

    Raises:
        RequestError: or EngineError, by `kind`: something failed in the `with`.
    """
    try:
        yield
        return
    except Exception as error:
        reason = type(error).__name__
    # The error is still in the air here: without `from None` its trace would be printed first.
    raise kind(f"{action} ({_REASONS.get(reason, reason)})") from None
