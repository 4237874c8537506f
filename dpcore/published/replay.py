"""Replay: read a run's public folder, rebuild it from its answers, and compare the bytes.

Another processor or another NumPy adds and multiplies in another order, so that models which follow
from the same answers may differ in their last digits. Floats of a model, and the tables that state
them, may do so by a small part of the largest magnitude next to them; every other byte is the same.

What `guarantee.json` of a run folder says beyond what follows from its locked plan.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import msgspec
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type
from dpcore.claims.plan.cost_statement import Limits
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.privacy_curve import require_covered
from dpcore.claims.plan.request import RELEASE
from dpcore.errors import LONGEST_MESSAGE, LONGEST_VALUE, ReplayError, need, one_line
from dpcore.guarantee import Guarantee, Recorded
from dpcore.learner import Learner
from dpcore.models.description import describe
from dpcore.models.figures import Figures, Statistics
from dpcore.published.bounded_reading import (
    folder_inside,
    names_in,
    no_run,
    read_arrays,
    read_bytes,
    read_json,
    require_answers,
)
from dpcore.published.folder import (
    ANSWERS,
    GUARANTEE_JSON,
    LOCK,
    MODEL,
    PUBLIC,
    REHEARSAL,
    REPRODUCTION,
    Run,
    files_of,
    model_files,
    tables_of,
)
from dpcore.published.lock import (
    decoded,
    explain_versions,
    relock,
    relocked,
    require_public,
    require_same,
)
from dpcore.published.stacking import Transcript, unstacked
from dpcore.randomness import PublicRandomness
from dpcore.registry.registry import Registry
from dpcore.resources.cost_estimate import require_quick
from dpcore.source import HANDED_OVER
from dpcore.specs.spec import spec_of_plain
from dpcore.transcript.isolated_copies import collect_arrays
from dpcore.transcript.rebuild import isolate, rebuild

if TYPE_CHECKING:
    from dpcore.domain.domain import Table
    from dpcore.sources.opening import Unopened

_Text = Annotated[str, msgspec.Meta(max_length=LONGEST_MESSAGE, pattern=r"\A[^\x00-\x1f\x7f]*\Z")]
_Texts = Annotated[list[_Text], msgspec.Meta(max_length=100)]


class PublishedStatement(msgspec.Struct, frozen=True):
    """What only the run itself can have added to the guarantee of its plan, in either format.

    It may weaken the guarantee, and never strengthens it. Who replayed it, and the entry of a
    ledger, are taken as they stand: the ledger itself can confirm the entry.
    """

    premises: list[str] = []
    release_boundary: _Texts = []
    door: _Texts = []  # until format 3
    distributions: Annotated[dict[_Text, _Text], msgspec.Meta(max_length=100)] = {}
    replayed: _Text = ""
    voided: _Text = msgspec.field(name="not private", default="")
    # Integers stay integers: an entry of a ledger counts runs.
    ledger: dict[str, int | float | _Text | _Texts] | None = None

    def applied(self, guarantee: Guarantee) -> Guarantee:
        """Return the plan's guarantee with all of it.

        Raises:
            ReplayError: the entry of a ledger is none.
        """
        boundary = [*self.release_boundary, *self.door]
        # In format 2 the one premise of a release boundary is among the plan's.
        handed_over = [HANDED_OVER] if HANDED_OVER in self.premises and not boundary else []
        if self.ledger is not None:
            try:
                msgspec.convert(self.ledger, type=Recorded)
            except msgspec.ValidationError:
                text = "guarantee.json: damaged (what it says of a ledger)"
                raise ReplayError(text) from None
        plan = guarantee.provenance
        return guarantee.with_provenance(
            distributions=dict(sorted({**self.distributions, **plan.distributions}.items())),
            boundary_premises=(*handed_over, *boundary),
            replayed=self.replayed,
            recorded=None if self.ledger is None else Recorded.of(self.ledger),
            voided=self.voided or plan.voided,
        )


ROUNDING = 1e-9  # the largest difference that counts as rounding, by the largest magnitude
_CHANNELS = (PUBLIC, REHEARSAL, REPRODUCTION)
_MOST_POINTS = 1 << 24  # numbers in the points of a function, whose file no plan describes


def _channel(folder: Path) -> tuple[str, Path]:
    """Return the first channel that a run folder has, and its folder."""
    for name in _CHANNELS:
        with contextlib.suppress(OSError):
            return name, folder_inside(folder, name)
    return PUBLIC, folder / PUBLIC


def load_run(
    folder: Path | str,
    registry: Registry | None = None,
    *,
    memory: int | None = None,
    work: int | None = None,
    public: Mapping[str, str | Table | Unopened] | None = None,
) -> Run:
    """Take the locked plan and rebuild the models from `answers.npz`.

    Nothing private is needed: anyone with the public folder and the same plugins can do it. The
    cost of the locked sensitivities and noise is composed, and must be the epsilon that the lock
    states; where other versions wrote it and it is not, `note` says that it is not priced here.
    Sensitivities are the lock's: `dpcore check` on the spec says whether they are right. What a
    run says of its ledger is taken as it is; `dpcore ledger verify --run` asks the ledger.

    Args:
        public: The public records that the run started from, by name, or paths of their files: the
            folder has their digests only, and no path that its lock names is opened.

    Raises:
        ReplayError: the folder is incomplete, or was changed, or states less than its noise costs.
        ResourceError: its plan needs more than `memory` and `work` allow.
        SpecError: its lock holds no valid spec.
    """
    is_path = isinstance(folder, Path | str)
    need(is_path, "load_run or replay", "the path of a run folder", "folder", describe_type(folder))
    folder = Path(folder)
    channel, files_folder = _channel(folder)
    try:
        # The folder may be a stranger's: every file is bounded in size before it is decoded.
        lock = decoded(read_json(files_folder / LOCK))
        statement = msgspec.json.decode(
            read_json(files_folder / GUARANTEE_JSON), type=PublishedStatement
        )
        require_answers(lock.spec.get("releases"), files_folder / ANSWERS)
    except OSError as error:
        raise no_run(folder, PUBLIC, error) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ReplayError(f"{folder}: damaged ({type(error).__name__})") from None
    registry = Registry.default() if registry is None else registry
    spec = spec_of_plain(lock.spec, LOCK, attrs.evolve(registry, locked=lock.versions))
    # How much this machine may do is for the reader to say, not for the lock.
    is_new = lock.plan.get("cells") == "nearest_double"
    domain = attrs.evolve(spec.request.domain, cells="nearest_double" if is_new else "positions")
    tables = require_public(spec, public or {})
    request = attrs.evolve(spec.request, domain=domain, public=tables)
    spec = attrs.evolve(spec, request=request, limits=Limits(memory=memory, work=work))
    randomness = PublicRandomness(lock.key)
    need(
        spec.request.randomness is None or spec.request.randomness.key == lock.key,
        ReplayError,
        f"{LOCK}.key: not the public key that the locked spec sets",
    )
    # What can be derived from the locked spec is derived anew, and the lock must equal it.
    plan = relock(spec, lock, randomness, reproduce=channel == REPRODUCTION)
    require_same(lock, relocked(lock, spec, plan), spec)
    # The cost of composing is a stranger's choice: it is counted first.
    releases = enumerate(plan.schedule.releases)
    queries = [
        (number, planned_query)
        for number, item in releases
        for planned_query in item.queries.values()
    ]
    require_quick(
        plan.request,
        [[*queries, *((0, planned_query) for planned_query in plan.schedule.evaluation)]],
        spec.limits,
    )
    note = require_covered(plan.schedule, plan.guarantee, plan.components, lock.versions)
    # The plan says how many numbers an honest archive holds: a larger one is refused unread.
    numbers, answer_limit = _count_limits(plan)
    orders = len(plan.schedule.releases)  # each of one number an answer, at most
    try:
        arrays = read_arrays(files_folder / ANSWERS, numbers + answer_limit, answer_limit + orders)
    except OSError as error:
        raise no_run(folder, PUBLIC, error) from None
    transcripts = unstacked(arrays, answer_limit)
    values = {name: tuple(release.values) for name, release in transcripts.items()}
    paid_evaluation = transcripts.get(RELEASE, Transcript((), ()))
    paid = spec.request.evaluation
    paid_metrics = (
        {}
        if paid is None
        else paid.stated(dict(zip(paid_evaluation.queries, paid_evaluation.values, strict=True)))
    )
    # Models follow from answers and public randomness only: that is why they cost nothing more.
    models = rebuild(isolate(plan.schedule.releases), values, randomness)
    model_arrays = {name: collect_arrays(model) for name, model in models.items()}
    descriptions = {name: describe(model) for name, model in models.items()}
    tables = tables_of(models, descriptions)
    guarantee = statement.applied(plan.guarantee)
    return Run(
        folder=folder,
        channel=channel,
        spec=spec,
        lock=lock,
        plan=plan,
        guarantee=guarantee,
        models=models,
        answers=values,
        evaluation=paid_metrics,
        files=files_of(lock, arrays, paid_metrics, models, model_arrays, tables, guarantee),
        note=note,
        descriptions=descriptions,
    )


def _count_limits(plan: Plan) -> tuple[int, int]:
    """Return how many numbers, and how many answers, a run of a plan may publish."""
    query_count = [
        planned_query
        for scheduled in plan.schedule.releases
        for planned_query in scheduled.queries.values()
    ]
    numbers = sum(
        planned_query.query.real_size * planned_query.query.at_most for planned_query in query_count
    )
    # How many points a function is asked is not in the plan: a fixed bound represents them.
    if not all(isinstance(item.learner, Learner) for item in plan.schedule.releases):
        numbers += _MOST_POINTS
    evaluations = len(plan.schedule.evaluation)
    return numbers + evaluations, sum(
        planned_query.query.at_most for planned_query in query_count
    ) + evaluations


def replay(
    folder: Path | str,
    registry: Registry | None = None,
    *,
    memory: int | None = None,
    work: int | None = None,
    exact: bool = False,
    public: Mapping[str, str | Table | Unopened] | None = None,
) -> Run:
    """Rebuild a run's files from its answers only, and compare every byte.

    The folder may be a stranger's: what is read is bounded by the plan that its lock states. Equal
    bytes show that answers and models agree with the locked plan, and that its noise costs what it
    states (`load_run`): not who made them, nor that its sensitivities are right, which `dpcore
    check` on the spec says.

    Another processor or NumPy may round floats of models and tables otherwise. Files in which they
    differ by at most 1e-9 of the largest magnitude in an array stand in `rounding` of the run.
    Digits beyond that difference are not shown to follow from the answers.

    Args:
        memory: Bytes that the plan may need; the machine's if None.
        work: Multiplications that it may need; 10^14 if None.
        exact: Whether to refuse rounding as well.
        public: As for `load_run`.

    Raises:
        ResourceError: the plan needs more.
        ReplayError: a file differs, is missing or was added.
    """
    # Bytes decide first. What is left of rounding is stated with the run.
    result = load_run(folder, registry, memory=memory, work=work, public=public)
    return compared(result, exact=exact)


def compared(run: Run, *, exact: bool) -> Run:
    """Return a run with its `rounding`: compare bytes, and let floats that differ be close.

    Args:
        run: One that was loaded, with the files that are rebuilt from its answers.
        exact: Whether to refuse rounding as well.

    Raises:
        ReplayError: more differs than the rounding of floats explains.
    """
    if not (names := differing(run)):
        return run
    # Other versions are no fault, and may explain a difference.
    versions = explain_versions(run.lock, run.spec)
    rebuilt = dict(np.load(io.BytesIO(run.files[MODEL])))
    try:
        # One array more is read, so that what was added can be named.
        published = read_arrays(run.kept / MODEL, len(run.files[MODEL]) // 8, len(rebuilt) + 1)
    except (OSError, ReplayError):
        published = rebuilt
    distances = {
        name: _distance(published.get(name), rebuilt.get(name)) for name in {**rebuilt, **published}
    }
    # Numbers of the folder stand in for those rebuilt where they are close: rounding explains a
    # difference only if the files that are written with them are the folder's, to the byte.
    arrays = {
        name: published[name] if distances[name] <= ROUNDING else array
        for name, array in rebuilt.items()
    }
    # A table of statistics holds numbers of the archive. A description's are in its own file only.
    models, descriptions = dict(run.models), dict(run.descriptions)
    for name, model in run.models.items():
        if isinstance(model, Statistics):
            tables = _with_columns(model.tables, partial(_archived, arrays, name))
            models[name] = Statistics(tables=tables)
        elif description := run.descriptions.get(name):
            tables = _with_columns(description.tables, partial(_described, run, name, distances))
            descriptions[name] = attrs.evolve(description, tables=tables)
    files = model_files(run.lock, arrays, tables_of(models, descriptions))
    unexplained = ", ".join(differing(attrs.evolve(run, files={**run.files, **files})))
    # A stranger chose the names of arrays that were added.
    keys = [f" ({one_line(k, LONGEST_VALUE)})" for k, d in distances.items() if not d <= ROUNDING]
    message = f"{run.kept}: {unexplained} do not replay{''.join(keys)}{versions}"
    need(not unexplained, ReplayError, message)
    message = f"{run.kept}: {', '.join(names)} do not replay to the byte{versions}"
    need(not exact, ReplayError, message)
    return attrs.evolve(run, rounding=dict.fromkeys(names, max(distances.values())))


def _with_columns(
    tables: Mapping[str, Figures], column: Callable[[str, str, Sequence[float]], Any]
) -> dict[str, Figures]:
    """Return the same tables with columns of floats that `column` computes.

    Its arguments are a table, a name and cells.
    """
    rounded = {}
    for key, figures in tables.items():
        columns: dict[str, Any] = {
            name: column(key, name, cells)
            for name, cells in figures.items()
            if {*map(type, cells)} == {float}
        }
        about = {name: tuple(columns.pop(name, cells)) for name, cells in figures.about.items()}
        if intervals := figures.population:
            ends = {end: columns.pop(f"population_{end}") for end in ("low", "high")}
            columns["population"] = attrs.evolve(intervals, **ends)
        rounded[key] = attrs.evolve(figures, about=about, **columns)
    return rounded


def _archived(
    arrays: Mapping[str, NDArray[Any]], release: str, key: str, name: str, cells: Sequence[float]
) -> NDArray[Any]:
    return arrays[f"{release}.{key}.{name}".replace("..", ".")]


def _described(
    run: Run,
    release: str,
    distances: dict[str, float],
    key: str,
    name: str,
    cells: Sequence[float],
) -> NDArray[np.float64]:
    """Return a column as the folder's table states it if rounding explains it; else as rebuilt."""
    rebuilt = np.array(cells)
    try:
        text = msgspec.json.decode(read_json(run.kept / f"{release}.table.json"))
        texts = text[key or release]["columns"][name]
        # An end without a number is null there. Whatever else is no float is not rounding.
        pairs = zip(texts, cells, strict=True)
        column = np.array([cell if value is None else value for value, cell in pairs])
    except (
        OSError,
        ReplayError,
        msgspec.DecodeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ):
        return rebuilt
    distance = _distance(column, rebuilt)
    if not distance <= ROUNDING:
        return rebuilt
    distances[f"{release}.{key}.{name}"] = distance
    return column


def _distance(published: Any, rebuilt: Any) -> float:
    """Return the largest difference by the largest magnitude; infinite or NaN if not rounding."""
    first, second = np.asarray(published), np.asarray(rebuilt)  # of None, where one is missing
    same_type = (first.dtype, first.shape) == (second.dtype, second.shape)
    if same_type and first.tobytes() == second.tobytes():
        return 0.0
    if not same_type or second.dtype.kind != "f":
        return np.inf
    with np.errstate(all="ignore"):
        # Infinities that are the same differ by nothing; a NaN stays one, and is no rounding.
        gaps = np.where(first == second, 0, np.abs(first - second))
        largest = np.abs(second[np.isfinite(second)]).max(initial=np.finfo(second.dtype).tiny)
        return float(gaps.max() / largest)


def differing(run: Run) -> list[str]:
    """List the files that a run's folder lacks, has in excess, or has with other bytes."""
    names = names_in(run.kept) | {*run.files}
    return sorted(
        name
        for name in names
        if name not in run.files or not _holds(run.kept / name, run.files[name])
    )


def _holds(path: Path, content: bytes) -> bool:
    try:
        return read_bytes(path, len(content)) == content
    except (OSError, ReplayError):
        return False
