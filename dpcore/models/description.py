"""Description: what a release hands over to be shown, as data: tables, and pictures as numbers.

A plugin gives numbers, names and units. Consoles, notebooks and reports draw them and escape every
text, so that nothing of a plugin becomes markup. Like all that is published, a description is a
function of released answers and public facts; a run reads it once, as copies of plain values.

`ShownModel` is the base of models that notebooks show and draw.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar, cast, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, NoModelError, need, one_line
from dpcore.learner import Model, Published
from dpcore.models.figures import Figures, Statistics
from dpcore.shown import Drawn

_LONGEST = 200  # characters of a title or a name

_Object = TypeVar("_Object", bound=Published)


def _text(value: str) -> str:
    # A plain str of one line, whatever subclass of it a plugin hands over.
    return one_line("".join(value), _LONGEST)


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _places(values: Iterable[Any]) -> tuple[float, ...] | tuple[str, ...]:
    places = tuple(values)
    has_names = any(isinstance(place, str) for place in places)
    return _texts(places) if has_names else tuple(map(float, places))


def _rows(values: Any) -> NDArray[np.float64]:
    rows = np.atleast_2d(np.array(values, dtype=np.float64))  # a copy
    rows.flags.writeable = False
    return rows


@attrs.frozen(kw_only=True, eq=False)
class Picture:
    """A picture as data: `Lines`, `IntervalPicture`, `Points` or `Matrix`. Anyone who shows it
    draws it.

    Args:
        title: A few words.
        at: Places along the first axis, shape (n,): numbers, or names.
        values: A row for each series, shape (k, n); one row may be given as shape (n,).
        names: Of the series, shape (k,); one series needs none.
        low, high: Ends of each value's interval, shape (k, n); None where none is stated.
        across, up: What both axes are, with units. unit: Of the values of a `Matrix`.
    """

    title: str = attrs.field(converter=_text)
    at: tuple[float, ...] | tuple[str, ...] = attrs.field(converter=_places)
    values: NDArray[np.float64] = attrs.field(converter=_rows)
    names: tuple[str, ...] = attrs.field(default=("",), converter=_texts)
    low: NDArray[np.float64] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_rows)
    )
    high: NDArray[np.float64] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_rows)
    )
    across: str = attrs.field(default="", converter=_text)
    up: str = attrs.field(default="", converter=_text)
    unit: str = attrs.field(default="", converter=_text)

    def __attrs_post_init__(self) -> None:
        ends = [end.shape for end in (self.low, self.high) if end is not None]
        shapes, needed_shape = [self.values.shape, *ends], (len(self.names), len(self.at))
        need(
            len(ends) != 1 and all(shape == needed_shape for shape in shapes),
            ContractError,
            f"{type(self).__name__} {self.title!r}: values, low and high must have the shape "
            f"{needed_shape}, as `names` and `at`, got {shapes}",
        )


@final
class Lines(Picture):
    """A line for each series, over places that are numbers."""


@final
class IntervalPicture(Picture):
    """A bar for each name in `at`, with its interval where one is stated."""


@final
class Points(Picture):
    """Points at places that are numbers, those of each series alike."""


@final
class Matrix(Picture):
    """A map of numbers: a row for each series, a column for each place."""


@attrs.frozen(kw_only=True, eq=False)
class Description:
    """What people are shown of a release also its arrays.

    Args:
        tables: By name, empty where there is one; published as files, like those of statistics.
        pictures: Drawn by a report, in order; a picture is no file of its own.
    """

    tables: Mapping[str, Figures] = attrs.field(factory=dict)
    pictures: tuple[Picture, ...] = ()

    def settled(self) -> "Description":
        """Return a copy that shares nothing with this one, and is made of plain values only.

        Raises:
            ContractError: a table's name or a picture's class is none that can be shown.
        """
        pictures = tuple(self.pictures)
        # A class derived from one of these could draw other numbers later: only they are copied.
        need(
            all(type(picture) in (Lines, IntervalPicture, Points, Matrix) for picture in pictures),
            ContractError,
            "a picture of a description must be Lines, IntervalPicture, Points or Matrix",
        )
        tables = {str(name): Figures.settled(table) for name, table in self.tables.items()}
        if tables:
            Statistics(tables=tables)  # looks at the names
        return Description(tables=tables, pictures=tuple(map(attrs.evolve, pictures)))


class Described(Published, Protocol):
    """What a release publishes, with tables and pictures of it for people to look at.

    The object's class extends this one: a method of that name by itself is no description.
    """

    def description(self) -> Description:
        """Tables and pictures: a function of what was published, and of public facts."""


def describe(published: Published) -> Description:
    """Return what a release hands over to be shown, read once; empty where it is not `Described`.

    Raises:
        ContractError: it hands over something else.
    """
    # By name: a model that anybody wrote may have an attribute of that name by chance.
    if Described not in type(published).__mro__:
        return Description()
    description = cast(Described, published).description()
    need(
        isinstance(description, Description),
        ContractError,
        f"the description of a {type(published).__name__} must be a Description",
    )
    return Description.settled(description)


def only_model(objects: Mapping[str, Published]) -> Model:
    """Return the only model of a run.

    Args:
        objects: What was published, by release name.

    Raises:
        NoModelError: there are several, or none.
    """
    models = {name: thing for name, thing in objects.items() if isinstance(thing, Model)}
    return _only(models, "model", objects)


def only_published(objects: Mapping[str, Published]) -> Published:
    """Return what the only release of a run published.

    Raises:
        NoModelError: there are several releases.
    """
    return _only(objects, "release", objects)


def _only(
    candidates: Mapping[str, _Object], kind: str, objects: Mapping[str, Published]
) -> _Object:
    listing = ", ".join(f"{name!r} is a {type(thing).__name__}" for name, thing in objects.items())
    count = f"{len(candidates)} {kind}s" if candidates else f"no {kind}"
    need(
        len(candidates) == 1,
        NoModelError,
        f"the run has {count}: {listing}. Take `models[NAME]`, or `published` of a single release",
    )
    return next(iter(candidates.values()))


class ShownModel(Drawn):
    """A model that shows what it published; all of it is public."""

    __slots__ = ()
