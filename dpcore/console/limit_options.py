"""Options of what a run may need of the machine, and whether it may say nothing."""

import contextlib

import attrs
import click

from dpcore.claims.plan.cost_statement import Limits, Resources
from dpcore.claims.plan.request import Request
from dpcore.specs.spec import Spec

memory_option = click.option(
    "--memory",
    metavar="SIZE",
    help="Refuse what needs more memory, such as 4GB. [default: the machine's]",
)
work_option = click.option(
    "--work",
    metavar="NUMBER",
    help="Refuse what needs more multiplications. [default: 1e14]",
)
expected_option = click.option(
    "--expected-records",
    "expected",
    metavar="N",
    type=click.IntRange(min=1),
    help="A public estimate of a private number of records, for memory and disk alone.",
)
public_option = click.option(
    "--public",
    multiple=True,
    metavar="NAME=PATH",
    help="The public records that the run started from: a file for each name of its lock.",
)
useless_option = click.option(
    "--even-if-useless",
    "useless",
    is_flag=True,
    help="Accept releases that say nothing, as public facts show.",
)

_THREAD = 48_000_000  # bytes that a thread's stack and its buffer of BLAS reserve


def in_bytes(text: str | None) -> int | None:
    """A size such as 4GB in bytes; None, for the machine's own limit, where none is stated.

    Raises:
        ParameterError: it is no size.
    """
    from dpcore.resources.cost_estimate import read_memory  # imported where it is asked for

    return None if text is None else read_memory(text)


def in_number(text: str | None) -> int | None:
    """A number of multiplications such as 1e14; None, for the default, where none is stated.

    Raises:
        ParameterError: it is no number.
    """
    from dpcore.resources.cost_estimate import read_work

    return None if text is None else read_work(text)


def limited(
    spec: Spec, memory: str | None, work: str | None, expected: int | None, *, useless: bool
) -> Spec:
    """The spec with the limits of the command line on what a run may need, and must say."""
    names = [release.name for release in spec.request.releases]
    request = Request.of(spec.request, accept_useless=names) if useless else spec.request
    limits = Limits(memory=in_bytes(memory), work=in_number(work), expected=expected)
    return attrs.evolve(spec, request=request, limits=limits)


def limit_process(resources: Resources, memory: int | None) -> None:
    """Have the system keep this process, and those that it starts, below `memory` bytes of data.

    Only where that is at least twice what the run needs: an estimate that is too low stops nobody.
    """
    import numpy as np

    from dpcore.private.engines.local import usable_threads

    needed_bytes = 2 * resources.memory + _THREAD * usable_threads()
    if memory is None or memory < needed_bytes:
        return
    # OpenBLAS tries for ever where it cannot have its buffers: it gets them before the limit.
    square = np.ones((256, 256))
    np.dot(square, square)
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows; a lower limit is there
        import resource

        resource.setrlimit(
            resource.RLIMIT_DATA, (memory, resource.getrlimit(resource.RLIMIT_DATA)[1])
        )
