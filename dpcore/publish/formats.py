"""Formats of a run folder: each writes what is published in its own words and under its own keys."""

from collections.abc import Callable
from typing import Any

import attrs

from dpcore.errors import ReplayError, need
from dpcore.guarantee import Guarantee
from dpcore.learning.models.figures import Figures
from dpcore.publish import format_two

FORMAT = 3
"""What is published now. From 2 on, a lock holds what a replay needs: nothing is priced again."""


@attrs.frozen(kw_only=True)
class Format:
    """How the files of one format are written.

    Args:
        guarantee: `guarantee.json`, and a part of the lock.
        paragraph: `guarantee.txt`.
        table: `RELEASE.table.json`, of each of its tables.
    """

    guarantee: Callable[[Guarantee], dict[str, Any]]
    paragraph: Callable[[Guarantee], str]
    table: Callable[[Figures], dict[str, Any]]


_FORMATS = {
    2: Format(
        guarantee=format_two.guarantee_data,
        paragraph=format_two.paragraph,
        table=format_two.table_data,
    ),
    FORMAT: Format(guarantee=Guarantee.to_dict, paragraph=Guarantee.paragraph, table=Figures.data),
}


def format_of(number: int) -> Format:
    """The format of a number.

    Raises:
        ReplayError: this version does not read it.
    """
    need(
        number in _FORMATS,
        ReplayError,
        f"spec.lock.json: a folder of format {number}, this version replays formats "
        f"{' and '.join(map(str, sorted(_FORMATS)))}: replay it with the dpcore that wrote it, or "
        f"run its spec again",
    )
    return _FORMATS[number]
