"""What engines on clusters share: records that stay here, versions that must agree, proportions of
parts, and errors in words that quote no record."""

import contextlib
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

from dpcore.errors import (
    ContractError,
    EngineError,
    MisfitError,
    RequestError,
    SourceError,
    need,
)
from dpcore.private.engines.base import Encode, Engine, Task, Workload
from dpcore.private.engines.local import LocalEngine
from dpcore.records import Folded
from dpcore.source import Part
from dpcore_engines.bundle import Contents, Failure

PLUGINS = "dpcore.plugins"
_ALWAYS = ("dpcore", "numpy")


@attrs.frozen(eq=False, repr=False, slots=False)
class ClusterEngine(Engine):
    """Records on the workers of a cluster, in bundles of neighbouring parts.

    Parts that are read once, or lie in this process's memory, stay here, in a `LocalEngine`.

    Args:
        spool: Where records that stay here are kept; the system's own folder if None.
        is_local: Whether the workers keep theirs on this machine's disk.
    """

    spool: Path | None = attrs.field(default=None, kw_only=True)
    is_local: bool = attrs.field(default=False, kw_only=True)
    _frames: list[Any] = attrs.field(factory=list, init=False)
    _contents: list[Contents] = attrs.field(factory=list, init=False)
    _local_engines: list[LocalEngine] = attrs.field(factory=list, init=False)

    def accept(self, workload: Callable[[], Workload]) -> None:
        """Refuse columns that are read in a zone, whose rules workers may not share.

        Raises:
            RequestError: there is one.
        """
        for name, dates in workload().domain.dates.items():
            need(
                dates.zone is None,
                RequestError,
                f"column {name!r} is read in {dates.zone}, and workers may have other rules of "
                f"that zone: use the local engine",
            )

    @property
    def note(self) -> str:
        """Whether the records stayed in this process."""
        return (
            "the source is read once, is grouped by persons, or lies in this process's memory: its "
            "records stayed in this process and were not sent to the cluster"
            if self._local_engines
            else ""
        )

    def load(self, parts: Sequence[Part], encode: Encode) -> tuple[int, ...]:
        """Every bundle reads neighbouring parts."""
        # An engine belongs to one run: another run's records would be added to the same totals.
        need(
            not (self._frames or self._local_engines),
            ContractError,
            "an engine holds the records of one run: make another",
        )
        # What can be read only once cannot be read again elsewhere, so it never leaves.
        if any(part.stays for part in parts):
            self._local_engines.append(LocalEngine(spool=self.spool))
            return self._local_engines[0].load(parts, encode)
        fractions, answers = self._read(parts, encode)
        counts: list[int] = []
        parts_read = 0
        # In the order of the parts: the first misfit in the source is the one that is reported.
        for fraction, contents in zip(fractions, answers, strict=True):
            if isinstance(contents, Failure):
                raise _read_error(contents, parts_read)
            self._contents.append(contents)
            counts += contents.counts
            parts_read += len(fraction)
        return tuple(counts)

    def total(self, task: Task) -> Folded:
        """Every bundle adds its own, and workers add these."""
        if self._local_engines:
            return self._local_engines[0].total(task)
        need(self._contents, ContractError, "the engine holds no records")
        total = self._add(task)
        if isinstance(total, Failure):
            raise total.error()
        return total

    def close(self) -> None:
        """Forget the records, here and on the workers."""
        self._forget()
        self._frames.clear()
        self._contents.clear()
        for engine in self._local_engines:
            engine.close()
        self._local_engines.clear()

    @abstractmethod
    def _read(
        self, parts: Sequence[Part], encode: Encode
    ) -> tuple[Sequence[Sequence[Part]], Sequence[Contents | Failure]]:
        """PRIVATE: proportions of the parts, and what a worker answers of each. Fills `_frames`."""

    @abstractmethod
    def _add(self, task: Task) -> Folded | Failure:
        """PRIVATE: return the total over all bundles."""

    @abstractmethod
    def _forget(self) -> None:
        """Remove from workers what `_frames` names."""


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return what a process would compute with: Python, and distributions; "" where one is
    missing.
    """
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


def cut_parts(parts: Sequence[Part], count: int) -> list[tuple[Part, ...]]:
    """Parts in their order, cut into so many pieces of nearly equal length, of a part at least."""
    count = max(1, min(count, len(parts)))
    cuts = [len(parts) * number // count for number in range(count + 1)]
    return [tuple(parts[a:b]) for a, b in pairwise(cuts)]


def _read_error(failure: Failure, before: int) -> SourceError:
    """Return what a worker could not read, as the local engine says it.

    Args:
        failure: What the worker answered.
        before: How many parts of the source are before the worker's first.
    """
    if failure.misfit is None:
        return SourceError(
            f"a worker cannot read its parts ({failure.cause}): it needs the same files, under the "
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
    """Errors of a cluster hold keys, arguments and traces: their types by itself are reported.

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
