"""A change: one way of being wrong, applied to right components by wrapping a method."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from gallery.entry import Entry


@attrs.frozen(kw_only=True)
class Change:
    """One way of being wrong.

    Args:
        mistake: In one sentence.
        apply: From right parts to wrong ones of the same sort.
        parents: Names of what it is applied to, where it makes a false claim.
    """

    name: str
    mistake: str
    apply: Callable[[Any], Any]
    parents: tuple[str, ...]


def entries(kind: str, changes: tuple[Change, ...], parents: Mapping[str, Any]) -> Iterator[Entry]:
    """Every change of every parent that it names."""
    for change in changes:
        for parent in change.parents:
            name = f"{parent}_{change.name}"
            wrong = change.apply(parents[parent])
            yield Entry(
                name=name,
                kind=kind,
                mistake=change.mistake,
                parent=parent,
                wrong=_making(wrong, name),
                right=_making(parents[parent], parent),
            )


def _making(parts, name):
    return lambda folder: parts.plugin(name, folder)
