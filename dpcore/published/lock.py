"""Lock: the canonical spec, versions, public key and priced plan, in one file."""

import hashlib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import attrs
import msgspec

from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.plan.request import Request
from dpcore.domain.moments import zone_rules
from dpcore.errors import ReplayError, SpecError, need, shown
from dpcore.guarantee import Status
from dpcore.published.bounded_reading import read_json
from dpcore.published.claims import Rules, claims_of, rules_of
from dpcore.published.earlier_formats import Format
from dpcore.published.files import replace_file
from dpcore.published.formats import (
    FORMAT,
    bound_dict,
    format_of,
    noise_of,
    public_dict,
    terms_of,
)
from dpcore.randomness import PublicRandomness
from dpcore.registry.distributions import with_siblings
from dpcore.sources.opening import Unopened, location
from dpcore.specs.spec import Spec

_EMPTY = {"unknown": "empty"}


class _Marked(msgspec.Struct, frozen=True):
    """What every lock says first."""

    format: int = 1


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `check` writes next to a spec and `run` publishes. All of it is public.

    Args:
        spec: The spec as plain data.
        versions: Of dpcore, the plugins used and the numerical libraries.
        key: Of the public randomness; None while every run draws its own.
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

    @property
    def leaves_empty(self) -> bool:
        """Whether cells of CSV files are empty where no number is known; earlier runs have `nan`
        and `inf` there, and replay as they were published."""
        return self.plan.get("unknown") == "empty"

    def randomness(self) -> PublicRandomness | None:
        """Return the public randomness at the locked key; None while every run draws its own."""
        return None if self.key is None else PublicRandomness(self.key)

    def digested(self) -> "Lock":
        """Return the same lock with its digest computed anew."""
        content = msgspec.structs.asdict(self)
        del content["digest"]
        digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()
        return msgspec.structs.replace(self, digest=digest)

    def encode(self) -> bytes:
        """Return canonical bytes: two spaces, a final newline; the order of columns is kept."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def same_request(self, spec: Spec) -> bool:
        """Return whether the lock was written for this spec by these versions."""
        # Compared as bytes, because the order of columns is part of what is encoded.
        is_same = msgspec.json.encode(self.spec) == msgspec.json.encode(spec.text)
        return is_same and versions(spec).items() <= self.versions.items()


def _normalise(data: Any) -> Any:
    """Pass data through JSON and back, so that what is written equals what is read again."""
    return msgspec.json.decode(msgspec.json.encode(data))


def versions(spec: Spec) -> dict[str, str]:
    """Return the distributions on which the numbers of a run depend, with its plugins' siblings.

    It also holds the rules of the zones in which the run reads moments.
    """
    return (
        with_siblings(spec.registry.versions())
        | {name: metadata.version(name) for name in ("numpy", "scipy")}
        | {
            f"tzdata {dates.zone}": zone_rules(dates.zone)
            for dates in spec.request.domain.dates.values()
            if dates.zone is not None
        }
    )


def lock_of(spec: Spec, plan: Plan, randomness: PublicRandomness | None) -> Lock:
    """Return the lock of a priced spec, in the present format and by installed versions."""
    names = {**plan.guarantee.provenance.distributions, **versions(spec)}
    return _lock(spec, plan, randomness, names, FORMAT, empty=True)


def relocked(lock: Lock, spec: Spec, plan: Plan) -> Lock:
    """Return the lock that a published one must equal if this plan follows from it.

    It has the published lock's format and versions, which are the publisher's. Other versions here
    may explain a difference, and are none.
    """
    rules = None
    # Rules are the lock's, as sensitivities are: no bound is asked again.
    if "claims" in lock.plan:
        try:
            rules = rules_of(lock.plan["claims"])
        except (LookupError, TypeError):
            raise ReplayError("spec.lock.json: damaged (its claims)") from None
    empty = lock.leaves_empty
    return _lock(
        spec, plan, lock.randomness(), lock.versions, lock.format, empty=empty, rules=rules
    )


def relock(
    spec: Spec, lock: Lock, randomness: PublicRandomness, *, reproduce: bool = False
) -> Plan:
    """Return the plan of a spec by its lock's terms and randomness; no bound is evaluated again.

    Raises:
        ReplayError: the lock does not fit the spec.
        SpecError: components do not fit together, at the place of the one that does not.
    """
    from dpcore.published.plan_from_lock import plan_from_terms

    names = tuple(release.name for release in spec.request.releases)
    terms = terms_of(lock.plan, names, format_of(lock.format))
    request = Request.of(spec.request, reproduce=reproduce)
    with spec.locate_errors():
        return plan_from_terms(request, terms, randomness, spec.registry, spec.limits)


def _lock(
    spec: Spec,
    plan: Plan,
    randomness: PublicRandomness | None,
    versions: dict[str, str],
    number: int,
    *,
    empty: bool,
    rules: Rules | None = None,
) -> Lock:
    style = format_of(number)
    described = describe(plan, style) | (_EMPTY if empty else {})
    if style.has_claims and plan.guarantee.status is not Status.NONE:
        try:
            described["claims"] = claims_of(plan, rules)
        except (LookupError, TypeError, AttributeError):
            message = "spec.lock.json: claims that lack a query of its plan, or state another clip"
            raise ReplayError(message) from None
    return Lock(
        spec=_normalise(spec.text),
        versions=versions,
        key=None if randomness is None else randomness.key,
        plan=_normalise(described),
        format=number,
    ).digested()


def describe(plan: Plan, style: Format) -> dict[str, Any]:
    """Return the priced plan as plain data, under the keys of a lock of a format."""
    # Every key is the format on disk: a new one would end the replay of published folders.
    return {
        # First, so that a replay with other records names them.
        **({"public_records": digests} if (digests := plan.schedule.public_digests) else {}),
        # Without it, a folder was published before there was a choice.
        **({"cells": cells} if (cells := plan.request.domain.cells) != "positions" else {}),
        "guarantee": style.guarantee(plan.guarantee),
        style.paid_evaluation: [
            {
                "query": planned_query.query.name,
                **(_size_of(planned_query) if style.has_claims else {}),
                **_describe_price(planned_query, style),
            }
            for planned_query in plan.schedule.evaluation
        ],
        "public": public_dict(plan),
        "releases": {
            scheduled.name: [
                {
                    **({"point": scheduled.release.point} if scheduled.release.point else {}),
                    "query": planned_query.query.name,
                    **_size_of(planned_query),
                    style.budget_fraction: planned_query.share,
                    **(
                        {"sampling": _component(planned_query.query.sampling)}
                        if planned_query.query.sampling is not None
                        else {}
                    ),
                    **(
                        {"bands": list(bands)}
                        if (bands := getattr(planned_query.query, "bands", None)) is not None
                        else {}
                    ),
                    **_describe_price(planned_query, style),
                }
                for planned_query in scheduled.queries.values()
            ]
            for scheduled in plan.schedule.releases
        },
    }


def _size_of(planned_query: PlannedQuery) -> dict[str, Any]:
    return {"shape": list(planned_query.query.shape), "at_most": planned_query.query.at_most}


def _describe_price(planned_query: PlannedQuery, style: Format) -> dict[str, Any]:
    """Return the results of pricing one query, as plain data."""
    return {
        "distance": str(planned_query.sensitivity.distance),
        # This number is for readers; `bound` holds what a replay rests on.
        "sensitivity": planned_query.sensitivity.plain(),
        "solver_error": planned_query.sensitivity.solver_error,
        "source": planned_query.sensitivity.source,
        "bound": bound_dict(planned_query.sensitivity, style),
        "mechanism": _component(planned_query.mechanism),
        "noise": noise_of(planned_query),
    }


def _component(component: Any) -> dict[str, Any]:
    """Return a component's class and the parameters that rebuild it, by their names in a spec."""
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
    """Return a parameter as JSON has it; a component inside another is without its class."""
    if isinstance(value, tuple | list):
        return [_parameter(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _parameter(item) for name, item in value.items()}
    fields = _component(value).items() if attrs.has(type(value)) else None
    return value if fields is None else {key: item for key, item in fields if key != "class"}


def lock_path(spec_path: Path) -> Path:
    """Return the path next to the spec: `quickstart.yaml` locks into `quickstart.lock.json`."""
    return spec_path.with_name(f"{spec_path.stem}.lock.json")


@attrs.frozen(eq=False)
class Locked:
    """A spec priced at its lock.

    Args:
        note: Why the lock could not be kept next to the spec, or empty.
    """

    plan: Plan
    lock: Lock
    note: str = ""


def require_public(spec: Spec, public: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the public records that a locked spec names, of those handed over as tables or paths.

    Raises:
        ReplayError: some are missing.
    """
    # No path of the lock is opened: a stranger may have written it.
    for name in spec.request.public:
        need(
            name in public,
            ReplayError,
            f"needs the public records {name!r} whose SHA-256 the lock states: hand them over with "
            f"--public {name}=PATH, or public={{NAME: PATH}} in Python",
        )
    return {
        name: attrs.evolve(cast(Unopened, item), location=location(public[name]), folder=None)
        if isinstance(public[name], str)
        else public[name]
        for name, item in spec.request.public.items()
    }


def locked(spec: Spec, *, write: bool = True, renew: bool = False) -> Locked:
    """Return the plan at the lock next to the spec if that one matches, else at a new lock.

    A lock matches when it was written for the same spec by the same versions and its plan is what
    pricing at its key gives; otherwise a new key is drawn.

    Args:
        write: Whether a new lock is written next to the spec's file.
        renew: Whether public records may be others than the old lock names.

    Raises:
        SpecError: they are others.
        UselessRelease: public facts show that a release says nothing, and that is not accepted.
    """
    path = None if spec.path is None else lock_path(spec.path)
    old_lock = None if path is None else _read_lock(path)
    if old_lock is not None and old_lock.same_request(spec):
        plan = _price_useful(spec, old_lock.randomness())
        # The old key is kept only where pricing at it gives the same lock, to the last byte.
        if lock_of(spec, plan, plan.randomness).encode() == old_lock.encode():
            return Locked(plan, old_lock)
    plan = _price_useful(spec)
    locked_digests = {} if old_lock is None or renew else old_lock.plan.get("public_records", {})
    for name, digest in plan.schedule.public_digests.items():
        need(
            locked_digests.get(name, digest) == digest,
            SpecError,
            f"not the records that {path} names: `dpcore check` locks these anew",
            ("data", "public", name),
        )
    lock = lock_of(spec, plan, plan.randomness)
    try:
        if write and path is not None:
            replace_file(path, lock.encode())
    except OSError as error:
        return Locked(plan, lock, f"{path} cannot be written ({error.strerror})")
    return Locked(plan, lock)


def _price_useful(spec: Spec, randomness: PublicRandomness | None = None) -> Plan:
    plan = spec.price(randomness)
    with spec.locate_errors():
        plan.schedule.require_useful(plan.randomness)
    return plan


def _read_lock(path: Path) -> Lock | None:
    """Return a lock file, or None if there is none or it is not one."""
    try:
        return decoded(read_json(path))
    except (OSError, ReplayError, msgspec.DecodeError, RecursionError):
        return None


def decoded(content: bytes) -> Lock:
    """Return a lock from its file's bytes.

    Raises:
        ReplayError: it is of another format, or was edited.
        msgspec.DecodeError: it is no lock.
    """
    # The format comes first: a lock of another one may lack the fields that are read below.
    format_of(msgspec.json.decode(content, type=_Marked).format)
    lock = msgspec.json.decode(content, type=Lock)
    need(
        lock.digest == lock.digested().digest,
        ReplayError,
        "spec.lock.json: edited or damaged: its digest is of another content",
    )
    return lock


def require_same(published: Lock, computed: Lock, spec: Spec) -> None:
    """Raise `ReplayError` naming the first key in which a lock differs from what follows from it.

    What is there is not shown: it may be of somebody else's choice.
    """
    pair = msgspec.to_builtins(published), msgspec.to_builtins(computed)
    if path := next(_differences(*pair, "spec.lock.json"), None):
        raise ReplayError(
            f"{path}: not what this installation computes from the lock"
            f"{explain_versions(published, spec)}"
        )


def explain_versions(lock: Lock, spec: Spec) -> str:
    """List the versions that differ between the publisher's installation and this one; or empty."""
    # Names that the lock by itself lists are not looked up here: a stranger chose them.
    clauses = [
        f"{name} {shown(lock.versions.get(name, 'not listed'))} there, {version!r} here"
        for name, version in versions(spec).items()
        if lock.versions.get(name) != version
    ]
    return f"; versions differ: {', '.join(clauses)}" if clauses else ""


def _differences(published: Any, computed: Any, path: str) -> Iterator[str]:
    """Yield the path of every leaf that differs."""
    if (
        isinstance(published, dict)
        and isinstance(computed, dict)
        and published.keys() == computed.keys()
    ):
        for key, value in published.items():
            yield from _differences(value, computed[key], f"{path}.{key}")
    elif published != computed:
        yield path
