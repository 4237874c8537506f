"""`session_arguments`: check what a session is handed over before anything is spent.

Messages name types and declared names only, never a cell of a table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import attrs

from dpcore.checks import describe_type, is_integer, need_positive, tupled
from dpcore.claims.accounting.budget import PrivacyBudget
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.admission import admit_to
from dpcore.encoding.blocks import in_memory, require_fit
from dpcore.encoding.pieces import KeptColumn
from dpcore.errors import (
    DpcoreError,
    ParameterError,
    SourceError,
    SpecError,
    below,
    need,
    unpassed,
)
from dpcore.learner import AnyLearner, Published
from dpcore.ledger.book import Ledger
from dpcore.ledger.remaining_budget import RemainingBudget
from dpcore.mechanism import AnyMechanism
from dpcore.models.figures import Statistics
from dpcore.registry.kinds import LEARNER
from dpcore.registry.registry import Registry
from dpcore.source import Source, TableSource
from dpcore.sources.opening import Unopened
from dpcore.specs.components import NAME, bind
from dpcore.yaml.located import of_plain

_OWNER = "Session"

Question = AnyLearner | tuple[str, Mapping[str, Any]]
"""A learner; or the name of one, and its fields."""


class Left(str):
    """What a session has left, in words and as a number."""

    budget: RemainingBudget

    def epsilon(self, delta: float) -> float:
        """Return the epsilon, at this delta, of the largest further release; rounded down."""
        return self.budget.of_one_release(delta)


def admitted(
    budget: Any, domain: Any, table: Any, on_invalid: Any, expected: Any, public: Any
) -> tuple[Table | Source, tuple[Any, ...]]:
    """Refuse what no session can be made of; the records that it may read, and who reads them.

    What is no source is in memory from here on, so that every release reads the same records.

    Returns:
        The records, and the components and classes on whose code they rest also their own.

    Raises:
        ParameterError: one of them is something else.
        SourceError: the table lacks a declared column, or one is of another type; or a record of a
            table in memory does not fit, where `on_invalid` is `refuse`: no release of this
            session could read it.
    """
    need(
        isinstance(budget, Ledger | PrivacyBudget),
        _OWNER,
        "a PrivacyBudget or a Ledger",
        "budget",
        describe_type(budget),
    )
    need(
        isinstance(domain, Domain),
        _OWNER,
        "a Domain, which declares every column",
        "domain",
        describe_type(domain),
    )
    is_named = public is None or isinstance(public, Mapping)
    need(is_named, _OWNER, "public records by name", "public", describe_type(public))
    need(on_invalid in ("refuse", "project"), _OWNER, "refuse or project", "on_invalid", on_invalid)
    is_count = expected is None or is_integer(expected)
    need(is_count, _OWNER, "a whole number of records, one or more", "expected", expected)
    # Names come before cells: a table that lacks a column is refused with no record read.
    names = _names(table)
    gaps = [] if names is None else [name for name in domain.raw if name not in names]
    if gaps:
        raise SourceError(
            f"the table has no column {gaps[0]!r}, which the domain declares: rename one, or "
            f"declare what there is"
        )
    records = admit_to(domain, table, on_invalid)
    code: tuple[Any, ...] = ()
    if isinstance(table, Unopened):
        # The file may change before the next release: it is read once, here.
        source = cast(Source, records)
        records = TableSource(in_memory(source, domain), premises=source.premises)
        code = (table.location, type(source))
    in_hand = records.table if isinstance(records, TableSource) else records
    if isinstance(in_hand, Source):
        return records, code
    columns = {name: KeptColumn((in_hand[name],)) for name in domain.raw}
    lengths = {len(in_hand[name]) for name in columns if hasattr(in_hand[name], "__len__")}
    need(len(lengths) <= 1, SourceError, "the columns are not equally long: hand over as many")
    if on_invalid == "refuse":
        with unpassed("the table cannot be read"):
            require_fit(domain, columns)
    if isinstance(records, TableSource):
        return attrs.evolve(records, table=columns), code
    return columns, code


def _names(table: Any) -> list[Any] | None:
    """Names of a table's columns; None for a source, a file, a stream or a lazy frame.

    Raises:
        ParameterError: it is none of these.
    """
    if isinstance(table, Mapping):
        return [*table]
    if isinstance(table, Source | Unopened) or hasattr(table, "collect"):
        return None
    for attribute in ("column_names", "columns"):  # pyarrow's; those of frames
        if hasattr(table, attribute):
            return [*getattr(table, attribute)]
    if hasattr(table, "__arrow_c_stream__"):
        return None
    raise ParameterError(
        _OWNER,
        "columns by name: a mapping or a data frame, or `dpcore.read_csv(path)` of a file",
        "table",
        describe_type(table),
    )


@contextmanager
def at_arguments(of_questions: bool) -> Iterator[None]:
    """Locate errors of a price by the arguments of a session's call, in place of keys of a spec."""
    try:
        yield
    except DpcoreError as error:
        match error.steps:
            case ("releases", number, "learner", *rest) if of_questions:
                error.steps = ("questions", number, *rest)
            case ("releases", _, *rest) | ("data", *rest):
                error.steps = (*rest,)
        raise


@contextmanager
def _at_fields(method: str, learner_name: str, fields: Mapping[str, Any]) -> Iterator[None]:
    """Locate errors about a learner by the method that asks it, and by its argument."""
    try:
        yield
    except DpcoreError as error:
        if error.steps[:1] in (("learner",), (learner_name,)):
            error.steps = (method, *error.steps[1:])
            if error.field is not None and error.field in fields:
                error.steps, error.field = (*error.steps, error.field), None
                # The learner's class, of which the caller has not heard.
                error.message = error.message.removeprefix(f"{getattr(error, 'owner', '')} ")
        raise


def require_epsilon(epsilon: Any) -> float:
    """Return epsilon as a float, if it is a finite number above 0.

    Raises:
        ParameterError: it is none.
    """
    # Any type of number serves, numpy's among others; True and a text are none.
    need_positive("a release", epsilon=epsilon)
    return float(epsilon)


def require_learner(learner: Any) -> None:
    """Refuse whatever is no instance of a learner.

    Raises:
        ParameterError: it is a class, a name, or something else.
    """
    is_class = isinstance(learner, type) and issubclass(learner, AnyLearner)
    example = f"with its fields: {learner.__name__}(...)" if is_class else "of dpcore_linear, say"
    is_learner = isinstance(learner, AnyLearner)
    need(is_learner, "a release", f"a learner {example}", "learner", describe_type(learner))


def require_arguments(mechanism: Any, name: Any, inputs: Any) -> None:
    """Refuse arguments of a release, next to its learner and its epsilon, of another type.

    Raises:
        ParameterError: one of them is of another type.
    """
    need(
        isinstance(mechanism, AnyMechanism | Mapping | None),
        "a release",
        "a mechanism, or one by the name of each query",
        "mechanism",
        describe_type(mechanism),
    )
    need(isinstance(name, str), "a release", "a text", "name", describe_type(name))
    is_list = isinstance(inputs, Sequence) and not isinstance(inputs, str)
    need(is_list, "a release", "a list of names", "inputs", describe_type(inputs))


def make_learner(name: str, registry: Registry, fields: Mapping[str, Any]) -> AnyLearner:
    """Make a learner from its fields by name, as a spec's release is made.

    Sequences of any kind are tuples from here on; of a field that holds several values, one is a
    list of itself: a column, a quantile.

    Raises:
        SpecError: it has no such field, lacks one, or one is of another type.
    """
    need(isinstance(name, str), _OWNER, "a learner's name", "name", describe_type(name))
    is_named = isinstance(fields, Mapping)
    need(is_named, name, "its fields by name", "fields", describe_type(fields))
    need(NAME not in fields, SpecError, f"{name} has no key {NAME!r}")
    cls = registry.component(LEARNER, name)
    several = {f.alias or f.name for f in attrs.fields(cls) if str(f.type).startswith("tuple[")}
    arguments = {
        field: (value,) if field in several and isinstance(value, str | int | float) else value
        for field, value in tupled(fields).items()
    }
    with below(name):
        node = of_plain({**arguments, NAME: name}, name)
        return cast(AnyLearner, bind(node, LEARNER, registry))


def question_method(learner_name: str, *keys: str, tables: bool = False) -> Callable[..., Any]:
    """Return a method of `Session` that asks a learner of the statistics plugin.

    Args:
        keys: Fields that may come without their names, in this order.
        tables: Whether it returns all tables by name, also where there is only one.
    """

    def ask(session: Any, *values: Any, epsilon: float, **fields: Any) -> Any:
        need(len(values) <= len(keys), SpecError, f"{learner_name} takes its fields by name")
        arguments = dict(zip(keys, values, strict=False)) | fields
        with _at_fields(ask.__name__, learner_name, arguments):
            published = session.release(session.learner(learner_name, arguments), epsilon=epsilon)
        return published if tables else only_table(published)

    ask.__name__ = learner_name.partition(".")[2]
    ask.__qualname__ = f"Session.{ask.__name__}"  # as Python's own errors name it
    first = f", {' and '.join(keys)} first" if keys else ""
    ask.__doc__ = f"Ask `{learner_name}` by its fields{first}, for this epsilon."
    return ask


def only_table(published: Published) -> Any:
    """Return the table of what publishes one, else the object itself."""
    tables = [*published.tables.values()] if isinstance(published, Statistics) else []
    return tables[0] if len(tables) == 1 else published
