"""Every exception that dpcore raises on purpose.

An error says where, what was needed, what came instead and the way out. It may show a parameter;
it never shows a record: tracebacks and messages are not private. Where is a path of keys, as a spec
spells them (`releases.1.mechanism`): anyone who raises gives the last of them, anyone who calls
puts its own in front (`below`), and who has read the file finds line and column
(`strict_yaml.places`). `exit_code` is what the command line returns for an error.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

LONGEST_VALUE = 80  # characters of one value in a message
LONGEST_MESSAGE = 1000
NEAR = 0.6  # of two names, by difflib's ratio; a name of two or three letters has fewer to share
LONGEST_LIST = 200  # characters of the names that a hint lists
SYNONYMS = {
    "average": "mean", "avg": "mean", "bincount": "histogram", "corr": "covariance",
    "correlation": "covariance", "cov": "covariance", "crosstab": "table", "groupby": "group_by",
    "len": "count", "max": "quantiles", "median": "quantiles", "min": "quantiles",
    "mode": "top", "nunique": "distinct", "percentile": "quantiles", "percentiles": "quantiles",
    "quantile": "quantiles", "size": "count", "std": "variance", "stddev": "variance",
    "total": "sum", "unique": "distinct", "value_counts": "histogram", "var": "variance",
}  # fmt: skip
"""What other tools call a statistic, and the last part of its name here."""
WITH = {"median": " with `quantiles: [0.5]`", "std": " (its square root is the deviation)"}
"""How a statistic of another name is asked for."""

_SQLSTATE = re.compile(r"[0-9A-Z]{5}\Z")

Key = TypeVar("Key", str, int)
Value = TypeVar("Value")
Result = TypeVar("Result")


def one_line(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """Return printable text without line breaks, cut in the middle if longer than `longest`."""
    words = " ".join(text.split())
    if len(words) > 2 * longest:  # so that a value of megabytes costs no more than a word
        words = f"{words[:longest]} {words[-longest:]}"
    clean = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
    if len(clean) <= longest:
        return clean
    end = longest // 4
    return f"{clean[: longest - end - 5]} ... {clean[-end:]}"


def shown(value: object) -> str:
    """Return a parameter as messages show it: its `repr`, shortened."""
    return one_line(repr(value), LONGEST_VALUE)


def near(name: str, valid: Iterable[str]) -> str:
    """Return a hint with the closest valid name, if one is close; capitals aside."""
    # Callers pass names of a public grammar: no hint may repeat what was read from data.
    candidates = sorted(valid)
    # The last part of a dotted name, or of a path, is what people remember of it.
    tails = {re.split("[./]", c.casefold())[-1]: c for c in reversed(candidates)}
    names = tails | {candidate.casefold(): candidate for candidate in candidates}
    cutoff = NEAR if len(name) > 3 else NEAR - 0.1
    word = re.split("[./]", name.casefold()[:100])[-1]
    matches = [SYNONYMS[word]] if SYNONYMS.get(word) in names else (
        difflib.get_close_matches(name.casefold()[:100], names, n=1, cutoff=cutoff)
    )  # fmt: skip
    return f"; did you mean {names[matches[0]]!r}{WITH.get(word, '')}?" if matches else ""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint with the closest valid name, or with all of them if they are few.

    The names are those of a public grammar, never any that were read from data.
    """
    names = sorted(valid)
    listing = f"; valid: {', '.join(names)}" if names else ""
    return near(name, names) or (listing if len(listing) <= LONGEST_LIST else "")


def unknown(kind: str, name: object, valid: Iterable[str]) -> str:
    """Return the message `no KIND is called NAME`, with the nearest valid name."""
    hint = nearest(name if isinstance(name, str) else "", valid)
    return f"no {kind} is called {shown(name)}{hint}"


class DpcoreError(Exception):
    """Base of everything raised on purpose.

    Args:
        message: What was needed, what came and the way out; kept to one line of bounded length.
        path: Dotted path of the key that it is about, or the keys.
        field: The key below `path` whose value is at fault, which the message names.
        key: The key below `path` that is itself at fault, which the message names.
        top: Whether `path` counts from the top of a spec, anyone who calls.
        place: FILE, or FILE:LINE:COLUMN, where it is known.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str = "",
        path: str | Sequence[str] = (),
        *,
        field: str | None = None,
        key: str | None = None,
        top: bool = False,
        place: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = one_line(message)
        self.steps = tuple(path.split(".") if isinstance(path, str) else path) if path else ()
        self.field, self.key, self.top, self.place = field, key, top, place

    @property
    def path(self) -> str:
        """The keys, dotted; empty where the error is about no key."""
        return one_line(".".join(self.steps), 2 * LONGEST_VALUE)

    @property
    def where(self) -> str | None:
        """FILE:LINE:COLUMN if it is known, else the dotted path down to the field, else None."""
        steps = self.steps if self.field is None else (*self.steps, self.field)
        return self.place or ".".join(steps) or None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.path, self.message) if part)


def need(condition: object, error: type[Exception] | str, *parts: Any, **fields: Any) -> None:
    """Raise `error(*parts, **fields)` unless a condition holds; of a text, `ParameterError`.

    The parts are computed in any case: they are cheap, and cannot fail where the condition holds.

    Args:
        error: Its class; or the owner of the parameter at fault, the first part of its error.
    """
    if not condition:
        fault = ParameterError if isinstance(error, str) else error
        raise fault(*((error, *parts) if isinstance(error, str) else parts), **fields)


def need_value(value: Value | None, error: type[Exception], *parts: Any, **fields: Any) -> Value:
    """Return a value that is not None; raise `error(*parts, **fields)` in place of None."""
    if value is None:
        raise error(*parts, **fields)
    return value


@contextmanager
def below(*keys: str | int) -> Iterator[None]:
    """Put `keys` in front of the path of every `DpcoreError` that is raised inside the block."""
    try:
        yield
    except DpcoreError as error:
        # Inner callers come first, so that each puts its keys in front of those it finds.
        if not error.top:
            error.steps = (*map(str, keys), *error.steps)
        raise


def map_below(
    function: Callable[[Value], Result], items: Iterable[tuple[Key, Value]], *keys: str | int
) -> dict[Key, Result]:
    """Return `{key: function(value)}`; put `keys` and the key before the path of an error."""
    results: dict[Key, Result] = {}
    for key, value in items:
        with below(*keys, key):
            results[key] = function(value)
    return results


class SpecError(DpcoreError):
    """A spec, a command line or a request is wrong."""

    exit_code: ClassVar[int] = 2


class ParameterError(SpecError, ValueError):
    """A parameter is outside what its component accepts.

    Args:
        owner: The component or function, by the name its user knows.
        needed: What it accepts, in words.
        field: Name of the parameter.
        got: The value that came.
        path: Of what holds the field, where a spec has it elsewhere than the owner.
        message: In place of these parts in a sentence. key: As for every error.
    """

    def __init__(
        self,
        owner: str,
        needed: str,
        field: str,
        got: object,
        path: str | Sequence[str] = (),
        *,
        message: str | None = None,
        key: str | None = None,
    ) -> None:
        sentence = (
            f"{owner} needs {needed}, got {field}={shown(got)}" if message is None else message
        )
        super().__init__(sentence, path, field=None if key else field, key=key)
        # The path ends in the field already.
        if self.steps[-1:] == (field,):
            self.field = None
        self.owner = owner
        self.needed = needed
        self.got = got


class ResourceError(SpecError):
    """A run needs more of the machine than it may use; nothing was opened or spent."""


class UselessRelease(SpecError):  # noqa: N818  # what it is, as its callers name it
    """Public facts show that a release would say nothing; nothing was opened or spent.

    Args:
        release: Its name. records: Below about so many it says nothing. at_most: There are no more.
    """

    def __init__(self, release: str, records: float, at_most: int) -> None:
        super().__init__(
            f"public facts show that {shown(release)} would say nothing: at this budget it takes "
            f"about {records:,.0f} records, and there are {at_most:,} at most. Give it a larger "
            f"budget, or accept that: accept_useless: [{release}] in a spec, --even-if-useless, or "
            f"accept_useless=True in Python"
        )
        self.release, self.records, self.at_most = release, records, at_most


class RegistryError(SpecError):
    """A component or plugin is unknown, not admitted, broken or clashes with another."""


class MissingPluginError(RegistryError, ImportError):  # type: ignore[misc]  # `path` is of keys
    """What was asked for comes with a distribution of this repository that is not installed."""


class NoClaimError(DpcoreError):
    """No guarantee can be stated: a bound refuses, is refuted, or no noise meets the budget."""

    exit_code: ClassVar[int] = 3


class AdjacencyError(NoClaimError):
    """A claim for one adjacency was asked to serve another that it does not cover."""


class UndeclaredError(NoClaimError):
    """A public fact is needed that the domain does not hold: the plan refuses who needs it."""


class UnfitTargetError(UndeclaredError):
    """A learner or bound for ranges and two classes was given a target of several classes."""


class UnknownCountError(UndeclaredError):
    """The exact number of records was asked for, and it is not public."""


class RandomnessWithheldError(DpcoreError):
    """Public randomness were read while a plan is priced without them."""


class SourceError(DpcoreError):
    """The records are missing, unreadable or do not fit the declared domain."""

    exit_code: ClassVar[int] = 5


_PROJECT = "; declare what the column holds, or set on_invalid: project"


class MisfitError(SourceError):
    """A record of a batch does not fit its column.

    Args:
        row: Its place in the batch, from 0.
    """

    def __init__(self, column: str, row: int, rule: str) -> None:
        # The place of the record, never its value: messages are not private.
        super().__init__(f"column {column!r}, record {row + 1}: needs {rule}{_PROJECT}")
        self.column, self.row, self.rule = column, row, rule

    def after(self, records: int, part: int = 0) -> SourceError:
        """Return the same error, its record counted from a part's start after `records` others."""
        where = f" of part {part + 1}" if part else ""
        return SourceError(
            f"column {self.column!r}, record {self.row + records + 1}{where}: needs {self.rule}"
            f"{_PROJECT}"
        )


class SpoolError(SourceError):
    """A disk that holds records meanwhile is full, or fails; a run that was charged stays spent."""

    exit_code: ClassVar[int] = 1


class ReleaseError(DpcoreError):
    """A release failed after the records were opened; what was reserved for it stays spent."""


class EngineError(ReleaseError, SpoolError):
    """An engine lost records, or fails, after they were opened: no private function's failure."""


UNREADABLE = (SourceError, MemoryError)
"""Of records that could not be read there is no statistic: no answer represents it, and no zero."""


@contextmanager
def unpassed(failure: str) -> Iterator[None]:
    """Suppress what a library says of records, since its message may show a cell.

    Raises:
        SourceError: with the kind of the library's error, and nothing else of it.
    """
    try:
        yield
    # A full memory is no fault of the source.
    except (DpcoreError, MemoryError):
        raise
    except Exception as error:
        raise SourceError(f"{failure} ({error_kind(error)})") from None


def error_kind(error: Any) -> str:
    """Return the part of a library's error that is reported: a server's SQLSTATE, or its type."""
    # The pattern lets five characters through, and nothing else of a driver's error.
    if isinstance(state := getattr(error, "sqlstate", None), str) and _SQLSTATE.match(state):
        return f"SQLSTATE {state}"
    return type(error).__name__


class NotPublishedError(DpcoreError):
    """The run was charged, and nothing of it is published; what was reserved stays spent."""

    exit_code: ClassVar[int] = 6


class LedgerError(DpcoreError):
    """A ledger cannot be used: damaged, unwritable, locked, replaced, or of another version."""

    exit_code: ClassVar[int] = 4


class OperatorFileError(DpcoreError):
    """The release is published; what its operator was to see next to it is missing."""

    exit_code: ClassVar[int] = 7


class ContractError(DpcoreError):
    """A component or a caller broke what an interface promises (an unplanned query, ...).

    It says nothing about the budget: it may come before the records are opened, or after.
    """


class RequestError(SpecError, ContractError):
    """A run was asked for what its plan does not hold; no record was opened."""


class NoModelError(RequestError, ValueError):
    """A run was asked for its only model or release, and has none or several of them."""


class ExhaustedError(DpcoreError):
    """An oracle has answered every question that was paid for; asking spends nothing more."""


class CertificateError(ReleaseError):
    """A solver's certificate does not reach its public tolerance; both figures are private.

    Args:
        owner: The solver. distance: What was certified. tolerance: What was needed.
    """

    def __init__(self, owner: str, distance: float, tolerance: float) -> None:
        super().__init__(f"{owner}: the solution could not be certified to its public tolerance")
        self.owner = owner
        self.distance = distance
        self.tolerance = tolerance


class ReplayError(DpcoreError):
    """A run folder does not replay to itself."""
