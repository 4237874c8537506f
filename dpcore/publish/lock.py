"""Lock: the canonical spec, versions, public key and priced plan, in one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import msgspec

from dpcore.errors import ReplayError
from dpcore.mechanism import AnyMechanism
from dpcore.plan.ask import Ask
from dpcore.publish.bounded_reading import read_bytes
from dpcore.publish.files import replace_file
from dpcore.publish.locked_terms import bound_dict, noise_of, public_dict
from dpcore.query import Query
from dpcore.randomness import PublicCoins
from dpcore.running.plan import Plan
from dpcore.specs.spec import Spec

FORMAT = 2
"""From 2 on, a lock holds what a replay needs, so that nothing is priced again."""


class _Marked(msgspec.Struct, frozen=True):
    """What every lock says first."""

    format: int = 1


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `check` writes beside a spec and `run` publishes. All of it is public.

    Args:
        spec: The spec as plain data.
        versions: Of dpcore, the plugins used and the numerical libraries.
        key: Of the public coins; None while every run draws its own.
        plan: Every query with its sensitivity and noise, and the guarantee.
        format: Of the lock and of the run folder that holds it.
        digest: SHA-256 of all the others; it finds an edit, and proves nothing: anyone can compute
            it.
    """

    spec: dict[str, Any]
    versions: dict[str, str]
    key: int | None
    plan: dict[str, Any]
    format: int = FORMAT
    digest: str = ""

    def coins(self) -> PublicCoins | None:
        """The locked public coins."""
        return None if self.key is None else PublicCoins(self.key)

    def digested(self) -> Lock:
        """The same with its digest."""
        said = msgspec.structs.asdict(self)
        del said["digest"]
        return msgspec.structs.replace(self, digest=hashlib.sha256(_bytes(said)).hexdigest())

    def encode(self) -> bytes:
        """Canonical bytes: two spaces, a final newline; the order of columns is kept."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def same_request(self, spec: Spec) -> bool:
        """Whether it was written for this spec by these versions."""
        same = _bytes(self.spec) == _bytes(spec.text)
        return same and self.versions == versions(spec)


def _bytes(data: Any) -> bytes:
    return msgspec.json.encode(data)


def _plain(data: Any) -> Any:
    """Through JSON and back, so that what is written equals what is read again."""
    return msgspec.json.decode(_bytes(data))


def versions(spec: Spec) -> dict[str, str]:
    """Distributions on which the numbers of a run depend."""
    libraries = {name: metadata.version(name) for name in ("numpy", "scipy")}
    return {**spec.registry.versions(), **libraries}


def lock_of(spec: Spec, plan: Plan, coins: PublicCoins | None) -> Lock:
    """The lock of a priced spec at `coins`."""
    return Lock(
        spec=_plain(spec.text),
        versions=versions(spec),
        key=None if coins is None else coins.key,
        plan=_plain(describe(plan)),
    ).digested()


def describe(plan: Plan) -> dict[str, Any]:
    """The priced plan as plain data."""
    return {
        "guarantee": plan.guarantee.to_dict(),
        "look": [{"query": ask.query.name, **_priced(ask)} for ask in plan.schedule.look],
        "public": public_dict(plan),
        "releases": {
            scheduled.name: [
                {
                    **({"point": scheduled.release.point} if scheduled.release.point else {}),
                    "query": ask.query.name,
                    "shape": list(ask.query.shape),
                    "at_most": ask.query.at_most,
                    "share": ask.share,
                    **_sampling(ask.query),
                    **_priced(ask),
                }
                for ask in scheduled.asks.values()
            ]
            for scheduled in plan.schedule.releases
        },
    }


def _priced(ask: Ask) -> dict[str, Any]:
    """What pricing found."""
    return {
        "distance": str(ask.query.distance),
        "sensitivity": ask.sensitivity.plain(),
        "solver_error": ask.sensitivity.solver_error,
        "source": ask.sensitivity.source,
        "bound": bound_dict(ask.sensitivity),
        "mechanism": mechanism_dict(ask.mechanism),
        "noise": noise_of(ask),
    }


def _sampling(query: Query) -> dict[str, Any]:
    if query.sampling is None:
        return {}
    return {"sampling": _component(query.sampling)}


def mechanism_dict(mechanism: AnyMechanism) -> dict[str, Any]:
    """A mechanism's class and fields."""
    return _component(mechanism)


def _component(component: Any) -> dict[str, Any]:
    """Its class and the parameters that make it again, under the names that a spec gives them."""
    kind = type(component)
    return {
        "class": kind.__name__,
        **{
            field.alias: _parameter(getattr(component, field.name))
            for field in attrs.fields(kind)
            if field.init
        },
    }


def _parameter(value: Any) -> Any:
    """A parameter as JSON has it; a component inside another stands without its class."""
    if isinstance(value, tuple | list):
        return [_parameter(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _parameter(item) for name, item in value.items()}
    if not attrs.has(type(value)):
        return value
    return {key: item for key, item in _component(value).items() if key != "class"}


def queries(plan: Plan) -> list[tuple[str, Query]]:
    """Every (release name, query) of a plan."""
    return [(s.name, ask.query) for s in plan.schedule.releases for ask in s.asks.values()]


def lock_path(spec_path: Path) -> Path:
    """Beside the spec: `quickstart.yaml` locks into `quickstart.lock.json`."""
    return spec_path.with_name(f"{spec_path.stem}.lock.json")


@attrs.frozen(eq=False)
class Locked:
    """A spec priced at its lock.

    Args:
        note: Why the lock could not be kept beside the spec, or empty.
    """

    plan: Plan
    lock: Lock
    note: str = ""


def locked(spec: Spec, *, write: bool = True) -> Locked:
    """The plan at the lock beside the spec if that one matches, else at a new lock.

    A lock matches when it was written for the same spec by the same versions and its plan is what
    pricing at its key gives; otherwise a new key is drawn.

    Args:
        write: Whether a new lock is written beside the spec's file.
    """
    beside = None if spec.path is None else lock_path(spec.path)
    kept = None if beside is None else _read_lock(beside)
    if kept is not None and kept.same_request(spec):
        plan = spec.price(kept.coins())
        if lock_of(spec, plan, plan.coins).encode() == kept.encode():
            return Locked(plan, kept)
    plan = spec.price()
    lock = lock_of(spec, plan, plan.coins)
    try:
        if write and beside is not None:
            replace_file(beside, lock.encode())
    except OSError as error:
        return Locked(plan, lock, f"{beside} cannot be written ({error.strerror})")
    return Locked(plan, lock)


def _read_lock(path: Path) -> Lock | None:
    """A lock file, or None if there is none or it is not one."""
    try:
        return decoded(read_bytes(path))
    except (OSError, ReplayError, msgspec.DecodeError, RecursionError):
        return None


def decoded(content: bytes) -> Lock:
    """A lock from its file's bytes.

    Raises:
        ReplayError: it is of another format, or was edited.
        msgspec.DecodeError: it is no lock.
    """
    found = msgspec.json.decode(content, type=_Marked).format
    if found != FORMAT:
        raise ReplayError(
            f"spec.lock.json: a folder of format {found}, this version replays format {FORMAT}: "
            f"replay it with the dpcore that wrote it, or run its spec again"
        )
    lock = msgspec.json.decode(content, type=Lock)
    if lock.digest != lock.digested().digest:
        raise ReplayError("spec.lock.json: edited or damaged: its digest is of another content")
    return lock


def require_versions(found: Lock, spec: Spec) -> None:
    """Raise `ReplayError` unless the lock was written by what is installed here."""
    _require_equal(found.versions, versions(spec), "spec.lock.json.versions")


def require_same(found: Lock, again: Lock) -> None:
    """Raise `ReplayError` naming what differs between a published lock and what follows from it."""
    ours, theirs = msgspec.to_builtins(again), msgspec.to_builtins(found)
    _require_equal(theirs, ours, "spec.lock.json")


def _require_equal(theirs: Any, ours: Any, at: str) -> None:
    for path, published, computed in _differences(theirs, ours, at):
        raise ReplayError(
            f"{path}: {published!r} was published, {computed!r} is what this installation computes"
        )


def _differences(found: Any, again: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """(path, found, again) of every leaf that differs."""
    if isinstance(found, dict) and isinstance(again, dict) and found.keys() == again.keys():
        for key, value in found.items():
            yield from _differences(value, again[key], f"{path}.{key}")
    elif found != again:
        yield path, found, again
