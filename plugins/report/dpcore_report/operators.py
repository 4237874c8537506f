"""What the operator by itself sees in a report: looks at private records that nothing pays for."""

from pathlib import Path
from typing import Annotated

import attrs
import msgspec
import numpy as np
from markupsafe import Markup

from dpcore.errors import ReplayError
from dpcore.metrics.base import Curve
from dpcore.models.description import Lines
from dpcore.private.evaluation import CONSTANT, PRIVATE, WITHOUT_NOISE
from dpcore.published.bounded_reading import folder_inside, read_json
from dpcore.published.folder import UNCOVERED
from dpcore_report.pictures import Additions, drawn

FILE = Path("operator") / "run.json"


_Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
PREDICTORS = (PRIVATE, CONSTANT, WITHOUT_NOISE)
_MOST_POINTS = 1000


@attrs.frozen(kw_only=True)
class Pictured:
    """A curve of the evaluation, with its words."""

    title: str
    picture: Markup
    curve: Curve


@attrs.frozen(kw_only=True)
class LastStep:
    """NOT covered by the guarantee.

    Args:
        warning: What the operator's file begins with.
        evaluation: Metrics on records held out: what each is of, and of each of `PREDICTORS` the
            number in six digits.
        pictures: Curves of the published models.
        notes: What was in for what.
    """

    warning: str
    evaluation: tuple[tuple[str, tuple[str, ...]], ...]
    pictures: tuple[Pictured, ...]
    notes: tuple[str, ...]


class _Points(msgspec.Struct, frozen=True):
    """A curve in the file."""

    across: str
    up: str
    diagonal: str
    points: Annotated[list[tuple[_Fraction, _Fraction]], msgspec.Meta(max_length=_MOST_POINTS)]


class _File(msgspec.Struct, frozen=True):
    """What the file may hold, among other things."""

    evaluation: dict[str, dict[str, dict[str, float | None]]] = {}
    curves: dict[str, dict[str, _Points]] = {}
    notes: dict[str, str] = msgspec.field(default_factory=dict, name="stand-ins")


def operators(folder: Path) -> LastStep:
    """From the operator's file of a run.

    Raises:
        ReplayError: it is missing or damaged.
    """
    path = folder / FILE
    try:
        inside = folder_inside(folder, FILE.parent.name) / FILE.name
        file = msgspec.json.decode(read_json(inside), type=_File)
    # One message for every fault: a parser's own would quote the private file.
    except (OSError, ReplayError, RecursionError, msgspec.MsgspecError):
        raise ReplayError(f"{path}: no operator's file of a run that can be read") from None
    # Nothing here is paid for: the template marks all of it as not covered.
    return LastStep(
        warning=UNCOVERED.rstrip("."),
        evaluation=tuple(
            (f"{release}, {metric}", tuple(_short(numbers.get(who)) for who in PREDICTORS))
            for release, metrics in file.evaluation.items()
            for metric, numbers in metrics.items()
        ),
        pictures=tuple(
            _draw_picture(f"{release}, {metric}", curve)
            for release, metrics in file.curves.items()
            for metric, curve in metrics.items()
        ),
        notes=tuple(f"{name}: {note}" for name, note in file.notes.items()),
    )


def _draw_picture(title: str, record: _Points) -> Pictured:
    points = np.asarray(record.points, dtype=np.float64).reshape(-1, 2)
    curve = Curve(across=record.across, up=record.up, diagonal=record.diagonal, points=points)
    across, up = points.T
    line = Lines(title=title, at=tuple(across), values=up, across=curve.across, up=curve.up)
    picture = drawn(line, Additions(reference=((0.0, 0.0), (1.0, 1.0))))
    return Pictured(title=title, picture=picture, curve=curve)


def _short(value: float | None) -> str:
    """Six digits; a dash for what could not be reported."""
    return "\u2013" if value is None else f"{value:.6g}"
