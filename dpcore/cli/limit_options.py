"""The options --memory and --work: what a run may need of the machine."""

from typing import Annotated

import attrs
import typer

from dpcore.specs.spec import Spec

MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Refuse what needs more memory, such as 4GB. [default: the machine's]",
        show_default=False,
    ),
]
WorkOption = Annotated[
    str | None,
    typer.Option(
        "--work",
        metavar="NUMBER",
        help="Refuse what needs more multiplications. [default: 1e14]",
        show_default=False,
    ),
]


def in_bytes(given: str | None) -> int | None:
    """A size such as 4GB in bytes; None, for the machine's own limit, where none is stated.

    Raises:
        ParameterError: it is no size.
    """
    from dpcore.pricing.cost_estimate import read_memory  # imported where it is asked for

    return None if given is None else read_memory(given)


def in_number(given: str | None) -> int | None:
    """A number of multiplications such as 1e14; None, for the default, where none is stated.

    Raises:
        ParameterError: it is no number.
    """
    from dpcore.pricing.cost_estimate import read_work

    return None if given is None else read_work(given)


def limited(spec: Spec, memory: str | None, work: str | None) -> Spec:
    """The spec with the limits of the command line on what a run may need."""
    return attrs.evolve(
        spec,
        request=attrs.evolve(spec.request, memory=in_bytes(memory), work=in_number(work)),
    )
