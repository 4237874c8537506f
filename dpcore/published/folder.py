"""Run folder: `public/` carries only what came through the door; `operator/` is for insiders."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import attrs
import msgspec
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type
from dpcore.claims.plan.cost_statement import Limits
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.request import RELEASE
from dpcore.domain.domain import Table, encoded_names
from dpcore.errors import ReplayError, RequestError, need
from dpcore.guarantee import Guarantee
from dpcore.learner import Answer, Learner, Model, Published
from dpcore.models.description import (
    Description,
    describe,
    only_model,
    only_published,
)
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
from dpcore.published.formats import format_of, write_csv
from dpcore.published.lock import Lock, decoded, relock, relocked, require_public, require_same
from dpcore.published.published_statement import PublishedStatement
from dpcore.published.stacking import Transcript, stacked, unstacked
from dpcore.randomness import PublicCoins
from dpcore.registry.registry import Registry
from dpcore.resources.effort import require_quick
from dpcore.shown import Shown
from dpcore.specs.spec import Spec, spec_of_plain
from dpcore.transcript.isolated_copies import Arrays, collect_arrays
from dpcore.transcript.rebuild import isolate, rebuild

if TYPE_CHECKING:
    from dpcore.models.predictions import Predictions
    from dpcore.sources.opening import Unopened

LOCK, ANSWERS, MODEL = "spec.lock.json", "answers.npz", "model.npz"
GUARANTEE_JSON, GUARANTEE_TEXT = "guarantee.json", "guarantee.txt"
PUBLIC, REHEARSAL, REPRODUCTION = "public", "operator/rehearsal", "operator/reproduction"
_CHANNELS = (PUBLIC, REHEARSAL, REPRODUCTION)
_MOST_POINTS = 1 << 24  # numbers in the points of a function, whose file no plan describes
EVALUATION, PREDICTIONS = "evaluation.json", "predictions.csv"
UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)


def _npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """An uncompressed archive whose bytes depend on names and arrays alone."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy types the keyword as bool
    return buffer.getvalue()


def public_files(
    lock: Lock,
    answers: Mapping[str, tuple[Answer, ...]],
    models: Mapping[str, Published],
    fitted: Mapping[str, Arrays],
    guarantee: Guarantee,
    evaluation: Mapping[str, Any] | None = None,
    descriptions: Mapping[str, Description] | None = None,
) -> dict[str, bytes]:
    """Every file of `public/`, by name: a function of the lock, the answers and nothing else.

    Args:
        fitted: The arrays of each model, by its name.
        evaluation: The paid metrics, computed from the look's answers.
        descriptions: Of models that hand over one, by name.
    """
    # Names and values alone. What else an answer carries is no part of the archive.
    transcripts = {
        name: Transcript([a.query.name for a in series], [np.asarray(a.value) for a in series])
        for name, series in answers.items()
    }
    tables = tables_of(models, descriptions or {})
    return _files(lock, stacked(transcripts), evaluation or {}, models, fitted, tables, guarantee)


def means(answers: Mapping[str, tuple[Answer, ...]]) -> dict[str, NDArray[Any]]:
    """The statistics that a paid look released, by query name."""
    return {answer.query.name: answer.value for answer in answers.get(RELEASE, ())}


def _files(
    lock: Lock,
    answers: Mapping[str, NDArray[Any]],
    paid_metrics: Mapping[str, Any],
    models: Mapping[str, Published],
    model_arrays: Mapping[str, Arrays],
    tables: Mapping[str, Mapping[str, Figures]],
    guarantee: Guarantee,
) -> dict[str, bytes]:
    parameters = {
        f"{name}.{key}": a for name, arrays in model_arrays.items() for key, a in arrays.items()
    }
    evaluation = {EVALUATION: _json(paid_metrics)} if paid_metrics else {}
    predictions = {
        f"{name}.{PREDICTIONS}": write_csv(
            [model.domain.target], [(value,) for value in model.values.tolist()]
        )
        for name, model in models.items()
        if isinstance(model, Model) and _is_predictions(model)
    }
    # These names are the format on disk: a replay compares each of them, byte for byte.
    return {
        LOCK: lock.encode(),
        ANSWERS: _npz(answers),
        **model_files(lock, parameters, tables),
        GUARANTEE_JSON: _json(format_of(lock.format).guarantee(guarantee)),
        GUARANTEE_TEXT: format_of(lock.format).paragraph(guarantee).encode() + b"\n",
        **evaluation,
        **predictions,
    }


def model_files(
    lock: Lock,
    parameters: Mapping[str, NDArray[Any]],
    tables: Mapping[str, Mapping[str, Figures]],
) -> dict[str, bytes]:
    """The files of numbers that are computed from answers: the archive of models, and all tables.

    Args:
        parameters: The arrays of all models, by `RELEASE.ARRAY`.
        tables: As `tables_of` gives them.
    """
    figures = {
        f"{name}.csv": write_csv(list(table), table.rows(), empty=lock.leaves_empty)
        for name, table in by_name(tables).items()
    }
    statistics = {
        f"{name}.table.json": _json(
            {key or name: format_of(lock.format).table(table) for key, table in group.items()}
        )
        for name, group in tables.items()
        if group
    }
    return {MODEL: _npz(parameters), **figures, **statistics}


def _is_predictions(model: Published) -> TypeGuard[Predictions]:
    """Whether it is published answers at points; a class derived from it may say other values."""
    from dpcore.models.predictions import Predictions

    return type(model) is Predictions


def tables_of(
    models: Mapping[str, Published], descriptions: Mapping[str, Description]
) -> dict[str, Mapping[str, Figures]]:
    """Every release's tables, published themselves or in the description of something else."""
    nothing = Description()
    return {
        name: (
            model.tables
            if isinstance(model, Statistics)
            else descriptions.get(name, nothing).tables
        )
        for name, model in models.items()
    }


def by_name(tables: Mapping[str, Mapping[str, Figures]]) -> dict[str, Figures]:
    """Every table of a run: `RELEASE`, or `RELEASE.NAME` where a release has several."""
    return {
        f"{name}.{key}".rstrip("."): table
        for name, group in tables.items()
        for key, table in group.items()
    }


def _json(data: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


@attrs.frozen(kw_only=True, eq=False)
class Run(Shown):
    """A run: its guarantee, its models ready to predict, and where it is kept.

    Args:
        folder: Of the run.
        channel: Where in it its files are: `public`, or what is below `operator` of a rehearsal or
            a reproduction.
        plan: As the lock states it, at the lock's coins.
        models: By release name, rebuilt from the answers.
        descriptions: What models hand over to be shown, by release name.
        answers: By release name, released values in order of asking.
        evaluation: Paid hold-out metrics by release: covered by the guarantee, and published.
        files: What its channel must hold, byte for byte.
        operator: NOT covered by the guarantee: what the one who ran it saw besides, such as
            `evaluation` and `seconds`. Empty in a sealed run, and in one that was loaded.
        note: Why the lock could not be kept beside the spec, the answers not be replayed in a
            clean process, or the stated epsilon not be confirmed; or empty.
        rounding: Files in which `replay` found floats rounded otherwise, each with the largest
            difference in an array of the run, by the largest magnitude in that array.
    """

    folder: Path
    channel: str
    spec: Spec
    lock: Lock
    plan: Plan = attrs.field(repr=False)
    guarantee: Guarantee
    models: Mapping[str, Published]
    answers: Mapping[str, tuple[NDArray[Any], ...]]
    evaluation: Mapping[str, Mapping[str, float]]
    files: Mapping[str, bytes] = attrs.field(repr=False)
    operator: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    note: str = ""
    descriptions: Mapping[str, Description] = attrs.field(factory=dict, repr=False)
    rounding: Mapping[str, float] = attrs.field(factory=dict, repr=False)
    __str__ = Shown.text

    @property
    def kept(self) -> Path:
        """The folder that holds the files of the run's channel."""
        return self.folder / self.channel

    @property
    def model(self) -> Model:
        """The model of a run that publishes exactly one.

        Raises:
            NoModelError: there are several, or none (a ValueError).
        """
        return only_model(self.models)

    @property
    def published(self) -> Published:
        """What the only release published, whatever it is.

        Raises:
            NoModelError: there are several releases.
        """
        return only_published(self.models)

    def predict(self, table: Table) -> NDArray[Any]:
        """Predictions of the only model, in the file's units, or classes; shape (n,).

        Args:
            table: Columns by name, a data frame among others, of any number of rows: models work on
                some at a time.

        Raises:
            NoModelError: there are several models, or none (a ValueError).
            SourceError: a column is missing.
        """
        return self.model.predict(table)

    def get_feature_names_out(self) -> tuple[str, ...]:
        """Names of the encoded columns, in order of encoding: what coefficients are about."""
        return encoded_names(self.spec.request.domain)

    @property
    def tables(self) -> dict[str, Figures]:
        """Every published table: `RELEASE`, or `RELEASE.NAME` where a release has several."""
        return by_name(tables_of(self.models, self.descriptions))

    def table(self, name: str = "") -> Figures:
        """One published table: a mapping of columns, with `to_pandas` and `to_arrow`.

        Args:
            name: Of `tables`; not needed where there is one.

        Raises:
            RequestError: there is no such table, or there are several and none is named.
        """
        tables = self.tables
        if not name and len(tables) == 1:
            return next(iter(tables.values()))
        listing = ", ".join(tables) or "none"
        need(name in tables, RequestError, f"the run has no table {name!r}; it publishes {listing}")
        return tables[name]


def _channel(folder: Path) -> tuple[str, Path]:
    """Where in a run folder its files are: the first channel that is there, and its folder."""
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
    Sensitivities are the lock's: `dpcore check` on the spec tells whether they are right. What a
    run says of its ledger is taken as it stands; `dpcore ledger verify --run` asks the ledger.

    Args:
        public: The public records that the run started from, by name, or paths of their files: the
            folder has their digests alone, and no path that its lock names is opened.

    Raises:
        ReplayError: the folder is incomplete, or was changed, or states less than its noise costs.
        ResourceError: its plan needs more than `memory` and `work` allow.
        SpecError: its lock holds no valid spec.
    """
    # A run compares nothing, and imports none of it.
    from dpcore.claims.plan.privacy_curve import require_covered

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
    coins = PublicCoins(lock.key)
    need(
        spec.request.coins is None or spec.request.coins.key == lock.key,
        ReplayError,
        f"{LOCK}.key: not the public key that the locked spec sets",
    )
    # What can be derived from the locked spec is derived anew, and the lock must equal it.
    plan = relock(spec, lock, coins, reproduce=channel == REPRODUCTION)
    require_same(lock, relocked(lock, spec, plan), spec)
    # The cost of composing is a stranger's choice: it is counted first.
    releases = enumerate(plan.schedule.releases)
    asks = [(number, ask) for number, item in releases for ask in item.asks.values()]
    require_quick(plan.request, [[*asks, *((0, ask) for ask in plan.schedule.look)]], spec.limits)
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
    look = transcripts.get(RELEASE, Transcript((), ()))
    paid = spec.request.look
    paid_metrics = (
        {} if paid is None else paid.stated(dict(zip(look.queries, look.values, strict=True)))
    )
    # Models follow from answers and public coins alone: that is why they cost nothing more.
    models = rebuild(isolate(plan.schedule.releases), values, coins)
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
        files=_files(lock, arrays, paid_metrics, models, model_arrays, tables, guarantee),
        note=note,
        descriptions=descriptions,
    )


def _count_limits(plan: Plan) -> tuple[int, int]:
    """How many numbers, and how many answers, a run of a plan may publish."""
    asks = [ask for scheduled in plan.schedule.releases for ask in scheduled.asks.values()]
    numbers = sum(ask.query.real_size * ask.query.at_most for ask in asks)
    # How many points a function is asked is not in the plan: a fixed bound stands for them.
    if not all(isinstance(item.learner, Learner) for item in plan.schedule.releases):
        numbers += _MOST_POINTS
    looks = len(plan.schedule.look)
    return numbers + looks, sum(ask.query.at_most for ask in asks) + looks


def _holds(path: Path, content: bytes) -> bool:
    try:
        return read_bytes(path, len(content)) == content
    except (OSError, ReplayError):
        return False


def differing(run: Run) -> list[str]:
    """Names of files that a run's folder lacks, has too many, or not with these bytes."""
    names = names_in(run.kept) | {*run.files}
    return sorted(
        name
        for name in names
        if name not in run.files or not _holds(run.kept / name, run.files[name])
    )
