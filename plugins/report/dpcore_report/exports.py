"""Exports: a published model as one file of JSON, or of Python that needs numpy only; rows.

What is exported is a function of the published answers and the locked plan, so that it is covered
by the run's guarantee. Values are doubles as texts that read back as the same doubles.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import msgspec
import numpy as np

from dpcore import Categories, Domain, Range, Run
from dpcore.domain import Classes, Dates
from dpcore.domain.bins import Binned
from dpcore.domain.domain import Column
from dpcore.errors import NoModelError, need, need_value
from dpcore.guarantee import rounded_up
from dpcore.models import LinearModel
from dpcore.models.features.identity import SAME
from dpcore.models.shapes import Shaped
from dpcore.rounding import down
from dpcore_report import portable, portable_linear
from dpcore_report.page import read_published

FORMAT = 1
_SHRINK = down(1.0, roundings=500)  # as a domain with a norm takes it


class Form(Enum):
    """What an exported file holds."""

    JSON = "json"
    PYTHON = "python"
    SHAPES = "shapes"
    CSV = "csv"
    PARQUET = "parquet"


def export(
    folder: Path | str, form: Form, *, memory: int | None = None, work: int | None = None
) -> bytes:
    """Return the only model of a published run, or its only synthetic rows, as one file.

    CSV is UTF-8, with an empty cell where there is no value. Parquet needs pyarrow, and its bytes
    are those of the version of pyarrow that is there.

    Raises:
        ReplayError: the folder is damaged, of something else, or a rehearsal's.
        NoClaimError: the run guarantees nothing.
        NoModelError: the run has no model or several, or its model has no export or no shapes; the
            same of rows.
    """
    run = read_published(folder, memory=memory, work=work)
    # Rows and shapes need no function that predicts.
    if form in _ENCODERS:
        return _encode_rows(run, _ENCODERS[form])
    if form is Form.SHAPES:
        shapes = {"shapes": describe_shapes(run.model)}
        text = msgspec.json.encode({**_facts(run), **shapes}, enc_hook=_plain)
        return msgspec.json.format(text, indent=2) + b"\n"
    module, model = describe(run.model)
    text = msgspec.json.encode({**_facts(run), **model}, enc_hook=_plain)
    if form is Form.JSON:
        return msgspec.json.format(text, indent=2) + b"\n"
    return _program(run, module, text.decode()).encode()


# What releases of rows are asked for, by name: a plugin brings their class.
_ENCODERS = {Form.CSV: "csv_bytes", Form.PARQUET: "parquet_bytes"}


def _encode_rows(run: Run, encoder: str) -> bytes:
    releases = [thing for thing in run.models.values() if hasattr(thing, encoder)]
    refusal = f"a file of rows needs one release of rows (synthetic.rows), and has {len(releases)}"
    need(len(releases) == 1, NoModelError, f"{run.folder}: {refusal}")
    encode: Callable[[], bytes] = getattr(releases[0], encoder)
    return encode()


def _facts(run: Run) -> dict[str, Any]:
    claim = run.guarantee
    return {
        "dpcore export": FORMAT,
        "digest of the lock": run.lock.digest,
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "adjacency": str(claim.adjacency),
        "status": claim.status.value,
    }


def describe(model: Any) -> tuple[ModuleType, dict[str, Any]]:
    """Return the module that scores for a model, and all that its predictions are made of.

    Raises:
        NoModelError: the model, its features or a column have no export; it names them.
    """
    if isinstance(model, LinearModel):
        module, width = portable_linear, model.coefficients.size
        values = {"features": _steps(model.features), "coefficients": model.coefficients}
    else:
        hook = _hook(model, "model")
        module, values = hook()
        width = len(model.arrays()["coefficients"])
    domain: Domain = model.domain
    norm = domain.norm
    return module, {
        "model": type(model).__name__,
        "columns": [_column(name, column) for name, column in domain.columns.items()],
        "norm": None if norm is None else {"longest": norm, "shrunk": _SHRINK * norm},
        "target": {"name": domain.target, **_target(domain.labels)},
        "width": width,
        "values": values,
    }


def describe_shapes(model: Any) -> list[dict[str, Any]]:
    """Return every shape of an additive model by the names of its fields, the most important first.

    Raises:
        NoModelError: the model is no sum of shapes.
    """
    shapes = need_value(
        model.shapes() if isinstance(model, Shaped) else None,
        NoModelError,
        f"a model of the class {type(model).__name__} is no sum of shapes: there are none to "
        f"export; `--format json` writes its values",
    )
    return [attrs.asdict(shape, recurse=False) for shape in shapes]


def _hook(thing: Any, kind: str) -> Callable[[], Any]:
    hook: Callable[[], Any] | None = getattr(thing, "exported", None)
    return need_value(
        hook,
        NoModelError,
        f"a {kind} of the class {type(thing).__name__} has no export; `dpcore.load_run` "
        f"predicts with it, where dpcore and its plugins are installed",
    )


def _steps(features: Any) -> list[dict[str, Any]]:
    """From encoded rows to features: every map's values, the innermost first."""
    steps: list[dict[str, Any]] = []
    while features is not None and features is not SAME:
        features, step = _hook(features, "feature map")()
        steps.insert(0, step)
    return steps


def _column(name: str, column: Column) -> dict[str, Any]:
    match column:
        case Categories(values=values, default=default):
            details: dict[str, Any] = {"map": column.spellings} if column.spellings else {}
            details |= {"as": "text"} if column.as_text else {}
            if isinstance(column, Binned):
                numbers = column.range
                # A last day holds all its moments, any other end only itself.
                end = max(numbers.end, math.nextafter(numbers.high, math.inf))
                details |= {"edges": column.edges, "range": {**_column(name, numbers), "end": end}}
            return {"name": name, "categories": values, "default": default, **details}
        case Range(low=low, high=high, default=default, missing=missing):
            ends = {"low": low, "high": high, "default": default, "missing": missing}
            zone = {key: getattr(column, key, None) for key in ("zone", "offsets")}
            ends |= {key: value for key, value in zone.items() if value}
            return {"name": name, **ends, "dates": isinstance(column, Dates)}
    raise NoModelError(f"column {name!r}: a column of texts has no export")


def _target(labels: Range | Classes) -> dict[str, Any]:
    if isinstance(labels, Classes):
        return {"classes": labels.values}
    return {"low": labels.low, "high": labels.high}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


_HEAD = '''"""Predictions of a model that dpcore published with differential privacy: {claim}.

Digest of the lock: {digest}. It needs numpy only.

    python FILE < table.csv                   one prediction a line
    from FILE import predict                  predict({{"column": [...], ...}})
"""
'''
_FOOT = '''
MODEL = r"""{text}"""


def predict(table):
    """Predictions at a table: a list or an array for each column, by name."""
    return predictions(json.loads(MODEL), score, table)


if __name__ == "__main__":
    main(MODEL, score)
'''


def _program(run: Run, module: ModuleType, text: str) -> str:
    """Return one file: how cells are read, how rows are scored, the values, and `predict`."""
    claim = run.guarantee
    facts: Mapping[str, Any] = {
        "claim": f"({rounded_up(claim.epsilon)}, {rounded_up(claim.delta)}), {claim.adjacency}",
        "digest": run.lock.digest,
    }
    sources = [inspect.getsource(part) for part in (portable, module)]
    # JSON never has three quotes in a row: no text of a spec ends the literal that holds it.
    return "\n\n".join([_HEAD.format(**facts), *sources]) + "\n" + _FOOT.format(text=text)
