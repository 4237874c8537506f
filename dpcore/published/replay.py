"""Replay: a run's public files rebuilt from its answers, and what may differ from the folder's.

Another processor or another NumPy adds and multiplies in another order, so that models which follow
from the same answers may differ in their last digits. Floats of a model, and the tables that state
them, may do so by a small part of the largest magnitude beside them; every other byte is the same.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import msgspec
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Table
from dpcore.errors import LONGEST_VALUE, ReplayError, need, one_line
from dpcore.models.figures import Figures, Statistics
from dpcore.published.bounded_reading import read_arrays, read_json
from dpcore.published.folder import MODEL, Run, differing, load_run, model_files, tables_of
from dpcore.published.lock import explain_versions
from dpcore.registry.registry import Registry
from dpcore.sources.opening import Unopened

ROUNDING = 1e-9  # the largest difference that counts as rounding, by the largest magnitude


def replay(
    folder: Path | str,
    registry: Registry | None = None,
    *,
    memory: int | None = None,
    work: int | None = None,
    exact: bool = False,
    public: Mapping[str, str | Table | Unopened] | None = None,
) -> Run:
    """Rebuild a run's files from its answers alone, and compare every byte.

    The folder may be a stranger's: what is read is bounded by the plan that its lock states. Equal
    bytes show that answers and models agree with the locked plan, and that its noise costs what it
    states (`load_run`): not who made them, nor that its sensitivities are right, which `dpcore
    check` on the spec tells.

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
    """A run with its `rounding`: bytes decide, and floats may be close where they differ.

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
    # A table of statistics holds numbers of the archive. A description's are in its own file alone.
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
    """The same tables with columns of floats that `column` gives for a table, a name and cells."""
    rounded = {}
    for key, figures in tables.items():
        columns: dict[str, Any] = {
            name: column(key, name, cells)
            for name, cells in figures.items()
            if {*map(type, cells)} == {float}
        }
        about = {name: tuple(columns.pop(name, cells)) for name, cells in figures.about.items()}
        if bars := figures.population:
            ends = {end: columns.pop(f"population_{end}") for end in ("low", "high")}
            columns["population"] = attrs.evolve(bars, **ends)
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
    """A column as the folder's table states it, where that is rounding; else as it is rebuilt."""
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
    """The largest difference by the largest magnitude; infinite or NaN where it is no rounding."""
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
