"""The price in memory and work, next to the price in privacy, and the limits that a run must keep.

Work is counted in multiplications, so that a limit means the same on every machine. Both prices are
made of public facts only: where the number of records is private, of the upper bound that is
declared (`at_most`), else of the number that the operator expects (`Limits.expected`), or of no
records where there is none. So a refusal reveals nothing of the records. They are asked for before
anything is priced: a component's count may fill the memory by itself.

Where records come in blocks (`Intake.blocks`) and every learner reads in blocks, some blocks are
in memory, and all records on disk; else all are in memory.

The price of pricing itself: how much a plan's calibration computes, counted before it starts.

Calibration composes all events about ten times, and looks at each distinct one's privacy curve at
some thousands of points. All exactly Gaussian events are one event to every accountant. A mixture
costs as much as the curves that it is a mixture of (`PrivacyCurve.atoms`). The count follows from
the public spec only and is the same on every machine; it is an estimate, to within a small factor.
"""

import contextlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from dpcore.claims.plan.cost_statement import Limits, Resources, resources_of
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.plan.request import Request
from dpcore.claims.plan.schedule import Scheduled
from dpcore.claims.pricing.calibration import at_first_guess
from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError, ParameterError, ResourceError, below, need
from dpcore.event import Event
from dpcore.guarantee import ReleaseKind
from dpcore.models.features.base import FeatureMap
from dpcore.query import Query, Reads, SumQuery
from dpcore.resources.room import machine_memory
from dpcore.sampling import Order, Poisson, WithoutReplacement
from dpcore.shown import in_bytes, in_powers

_NUMBER = 8  # bytes
_PROCESS = 85_000_000  # bytes of an interpreter with numpy and a reader of files, at times scipy
_FILES, _FILES_OF_QUERY = 40_000, 2_000  # bytes of a run folder, and what a query adds to its files
_PUBLISHED, _ROW = 32, 200  # bytes of a number in arrays, of one in a table
_ID = 250  # a text, its place in a table of them, and the words a record is chosen by
_BLOCK = 10_000  # features
_SEARCH = 20  # passes of a private search: an estimate, since they follow the records
_IN_FLIGHT = 1 << 16  # records of a batch that is read, or of the blocks of some threads
_CELL = 100  # bytes of a cell while a file is read
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kMGT]?)(i?)B?\Z")
_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:[eE]\+?([0-9]{1,3}))?\Z")

MOST_WORK = 10**14
"""Multiplications that a run may need where no limit is given: hours of one processor."""


def read_memory(text: str) -> int:
    """Bytes of `500MB`, `4GB`, `1.5GiB` or a plain number.

    Raises:
        ParameterError: it is none of these.
    """
    match = _MEMORY.match(text.strip())
    if match is None or not float(match[1]) > 0:
        raise ParameterError("--memory", "a size such as 500MB or 4GB", "memory", text)
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " kMGT".index(match[2] or " "))


def read_work(text: str) -> int:
    """Multiplications: `1e15`, or a plain number.

    Raises:
        ParameterError: it is neither.
    """
    match = _COUNT.match(text.strip())
    if match is None or len(text) > 40 or not float(match[1]) > 0:
        raise ParameterError("--work", "a number such as 1e15", "work", text)
    digits, _, decimals = match[1].partition(".")
    # Integers all along: a limit of 1e23 is not what the nearest float says.
    return int(int(digits + decimals) * 10 ** int(match[2] or 0) // 10 ** len(decimals))


def require_room(request: Request, part: Domain, limits: Limits) -> None:
    """Refuse components that need too much, before anything is priced.

    Raises:
        ResourceError: more than the limit, however the records are read.
    """
    part = _expect_records(part, limits)
    # Queries say how they are read, and planning them may already need what is refused here.
    try:
        _of_components(request, part, limits, blocks=False)
    except ResourceError:
        if not request.records.blocks:
            raise
        _of_components(request, part, limits, blocks=True)


def _of_components(request: Request, part: Domain, limits: Limits, *, blocks: bool) -> Resources:
    """Return what the components of a request say.

    Args:
        blocks: Whether blocks of the records are in memory, not all of them.

    Raises:
        ResourceError: more than the limit, at the release that needs most.
    """
    # In blocks, the records are on disk; else the table stays in memory next to every fit.
    request = attrs.evolve(request, domain=_expect_records(request.domain, limits))
    table = _spooled(request) if blocks else _table(request.domain)
    total = table
    for number, release in enumerate(request.releases):
        needs = Resources()
        for component in _parts(release.learner):
            # A fit by blocks needs memory for a block's records, and work for all of them.
            memory = _of_part(component, _limit_records(part) if blocks else part).memory
            needs += attrs.evolve(_of_part(component, part), memory=memory)
        with below("releases", number, "learner"):
            _require_within(limits, needs.memory + table.memory, total.work + needs.work)
        # Fits follow each other: memory is given back in between, work is not.
        total = total.largest(attrs.evolve(needs, memory=needs.memory + table.memory))
    return total


def with_queries(
    releases: Iterable[Scheduled], request: Request, part: Domain, limits: Limits
) -> Resources:
    """Return what a request needs with its plan's queries, each as often as it may be asked.

    Raises:
        ResourceError: more than the limit.
    """
    releases, part = [*releases], _expect_records(part, limits)
    records = _expect_records(request.domain, limits).at_most or 0
    reads = Reads.most(scheduled.reads for scheduled in releases if scheduled.release.of is None)
    # Only now it is known how the records are read: all are in memory where one release needs all.
    blocks = request.records.blocks and reads.in_blocks
    total = components = _of_components(request, part, limits, blocks=blocks)
    for number, scheduled in enumerate(releases):
        passes = _SEARCH if scheduled.reads is Reads.LOOPS else 1
        queries = [planned_query.query for planned_query in scheduled.queries.values()]
        sized_part = _expect_records(scheduled.part, limits)
        answers = sum((_of_query(query, sized_part, passes) for query in queries), Resources())
        bytes_each = _ROW if scheduled.publishes is ReleaseKind.STATISTICS else _PUBLISHED
        numbers = sum(query.real_size * query.at_most for query in queries)
        files = _FILES_OF_QUERY * len(queries) + bytes_each * numbers
        answers = attrs.evolve(answers, published=files)
        if blocks:
            # What every pass would compute again is kept on disk next to the records.
            answers = attrs.evolve(answers, disk=components.disk + _derived(scheduled, records))
        with below("releases", number, "learner"):
            _require_within(limits, components.memory + answers.memory, total.work + answers.work)
        # Answers are in memory until all are published: theirs adds up.
        total += answers
    return attrs.evolve(total, published=_FILES + total.published)


def _expect_records(domain: Domain, limits: Limits) -> Domain:
    """Return the domain with as many records as the operator expects, where it declares no
    number.
    """
    is_unknown = domain.at_most is None and limits.expected is not None
    return attrs.evolve(domain, limit=limits.expected) if is_unknown else domain


def _of_query(query: Query, part: Domain, passes: int) -> Resources:
    """Return its answers; and a statistic whose every number looks at every record that a query
    sees, in so many passes.

    What is made of an answer is taken as a product of square matrices of so many numbers.
    """
    size, repeats, records = query.real_size, query.at_most, part.at_most or 0
    rows, memory = records, _NUMBER * size * (repeats + 3)
    # Past sums are kept as pairs of integers.
    if isinstance(query, SumQuery) and query.bands is not None:
        memory += 2 * _NUMBER * size * len(query.bands)
    # A sampled ask goes through the records that it draws, not through all.
    match query.sampling:
        case Poisson(probability=probability):
            rows = math.ceil(probability * records)
        case WithoutReplacement(size=sample_size):
            rows = sample_size
        case Order(steps=steps):
            rows, memory = steps, memory + 2 * _NUMBER * steps
    pass_work = rows * (size + part.width) + size * (math.isqrt(size) + 1)
    return Resources(memory, repeats * passes * pass_work, repeats * passes)


def _require_within(limits: Limits, memory: int, work: int) -> None:
    """Refuse a release with these figures: its own memory, the work up to its end."""
    # No limit of memory where neither the operator nor the system names one.
    most_memory = machine_memory() if limits.memory is None else limits.memory
    if most_memory is not None and memory > most_memory:
        raise ResourceError(
            f"needs about {in_bytes(memory)} of memory, the limit is {in_bytes(most_memory)}; "
            f"nothing was opened or spent (--memory sets another limit)"
        )
    most_work = MOST_WORK if limits.work is None else limits.work
    need(
        work <= most_work,
        ResourceError,
        f"needs about {in_powers(work)} multiplications, the limit is {in_powers(most_work)}; "
        f"nothing was opened or spent (--work sets another limit)",
    )


def _ids(domain: Domain) -> int:
    """Bytes of memory for whose the records are, at worst one person a record."""
    return 0 if domain.people is None else _ID * (domain.at_most or 0)


def _table(domain: Domain) -> Resources:
    """Return the process itself, and what it takes to read and encode the records, all in
    memory.
    """
    records = domain.at_most or 0
    cells = records * (len(domain.columns) + len(domain.groups) + 1)
    memory = _CELL * cells + 2 * _NUMBER * records * domain.width + _ids(domain)
    return Resources(_PROCESS + memory, cells, 1, cells=cells)


def _spooled(request: Request) -> Resources:
    """Reading and encoding in batches; all else goes to disk, the hold-out as it was read."""
    domain = request.domain
    records, columns = domain.at_most or 0, len(domain.columns) + len(domain.groups) + 1
    holdout_records = math.ceil(records * request.records.holdout)
    memory = _table(_limit_records(domain)).memory + _ids(domain)
    row = _NUMBER * (domain.width + 1 + len(request.cut_columns))
    encoded = (2 if holdout_records else 1) * records * row
    # The hold-out is read by itself afterwards, and the others are written once more.
    readings = 2 if holdout_records else 1
    spool = encoded + _CELL * holdout_records * columns
    return Resources(memory, records * columns, 1, spool, cells=readings * records * columns)


def _derived(scheduled: Scheduled, records: int) -> int:
    """Return what a descent or a loop derives once for all its passes: 32-bit rows, and two numbers
    a record."""
    loops = scheduled.reads is Reads.LOOPS
    widths = [
        planned_query.query.real_size
        for planned_query in scheduled.queries.values()
        if loops or planned_query.query.at_most > 1
    ]
    return records * (4 * max(widths) + 2 * _NUMBER) if widths else 0


def _limit_records(domain: Domain) -> Domain:
    """Return the domain with as many records as are in memory at a time."""
    count = _IN_FLIGHT if domain.at_most is None else min(_IN_FLIGHT, domain.at_most)
    exact, limit = (None, count) if domain.exact is None else (count, domain.limit)
    return attrs.evolve(domain, exact=exact, limit=limit)


def _of_part(component: Any, part: Domain) -> Resources:
    if isinstance(component, FeatureMap):
        width, records = int(component.width(part)), part.at_most or 0
        side = min(width, records)  # fits take features block by block, and hold one square matrix
        numbers = width * part.width + records * min(width, _BLOCK) + 2 * side**2
        work = width * part.width * records + side**2 * max(width, records)
        return resources_of(component, part) + Resources(_NUMBER * numbers, work)
    return resources_of(component, part)


def _parts(component: Any) -> Iterator[Any]:
    """Yield a component and the components in its fields."""
    yield component
    if attrs.has(type(component)):
        for field in attrs.fields(type(component)):
            value = getattr(component, field.name)
            for inner in value if isinstance(value, tuple) else (value,):
                if attrs.has(type(inner)):
                    yield from _parts(inner)


MOST_PRICING = 2 * 10**9
"""Multiplications that pricing may need where `work` does not allow more: seconds."""
_POINTS = 10_000  # of one event's curve, in all compositions of a calibration
_VALUE = 50  # multiplications of a Gaussian curve at one point
_WITH = 32  # what an event costs next to the values of its curve, in these


def require_quick(
    request: Request, groups: Iterable[Sequence[tuple[int, PlannedQuery]]], limits: Limits
) -> int:
    """Return the multiplications, if they are no more than the limit.

    Args:
        groups: What is calibrated together: each query with the number of its release.

    Raises:
        ResourceError: more than the limit, at the release that reaches it.
    """
    limit, total, culprit = max(MOST_PRICING, limits.work or 0), 0, None
    for group in groups:
        kinds: set[Event | None] = set()
        for number, planned_query in _scale_group(request, group):
            for kind in _kinds(planned_query):
                # Equal events are composed as one, so that only distinct ones cost anything.
                if kind not in kinds:
                    kinds.add(kind)
                    total += _POINTS * _VALUE * (_WITH + (1 if kind is None else kind.curve.atoms))
            if total > limit and culprit is None:
                culprit = number
    if culprit is None:
        return total
    with below("releases", culprit):
        raise ResourceError(
            f"from here on, pricing needs more than {in_powers(limit)} multiplications, the limit: "
            f"about {in_powers(total)} for all; nothing was opened or spent (noise that is equal "
            "counts once, and so does all Gaussian noise; --work sets another limit)"
        )


def _scale_group(
    request: Request, group: Sequence[tuple[int, PlannedQuery]]
) -> list[tuple[int, PlannedQuery]]:
    """The asks about where calibration starts; none if it refuses there, as it will."""
    budget, scaled_queries = request.budget, tuple[PlannedQuery, ...]()
    with contextlib.suppress(NoClaimError, ParameterError):
        scaled_queries = at_first_guess(
            [planned_query for _, planned_query in group], budget.epsilon, budget.delta
        )
    return [
        (number, planned_query)
        for (number, _), planned_query in zip(group, scaled_queries, strict=False)
    ]


def _kinds(planned_query: PlannedQuery) -> Iterable[Event | None]:
    """Yield what is composed by itself; None is everything Gaussian."""
    with contextlib.suppress(NoClaimError, ParameterError):
        for part, _ in planned_query.event().parts():
            # Gaussians of any width add up to one Gaussian before a curve is looked at.
            yield None if part.claims.mu is not None else part
