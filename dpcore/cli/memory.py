"""The option --memory: what a run may need of the machine."""

from __future__ import annotations

from typing import Annotated

import attrs
import typer

from dpcore.spec.spec import Spec

MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Refuse what needs more memory, such as 4GB. [default: the machine's]",
        show_default=False,
    ),
]


def in_bytes(given: str | None) -> int | None:
    """The limit, None for the machine's."""
    if given is None:
        return None
    from dpcore.pricing.resources import read_memory  # imported where it is asked for

    return read_memory(given)


def limited(spec: Spec, given: str | None) -> Spec:
    """The spec with the limit."""
    memory = in_bytes(given)
    if memory is None:
        return spec
    return attrs.evolve(spec, request=attrs.evolve(spec.request, memory=memory))
