"""Options that commands share: the engine of a run, and what a run may need of the machine.

An engine comes from the command line or the operator's file; never from a spec.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import attrs
import click
import msgspec

from dpcore.claims.plan.cost_statement import Limits, Resources
from dpcore.claims.plan.request import Request
from dpcore.errors import RequestError, need
from dpcore.registry.kinds import ENGINE
from dpcore.registry.registry import Registry
from dpcore.registry.user_folder import user_file
from dpcore.sources.opening import open_source
from dpcore.specs.spec import Spec
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import locate_errors, read

if TYPE_CHECKING:
    from dpcore.claims.plan.plan import Plan
    from dpcore.private.engines.choice import EngineChoice
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
    help="A public estimate of a private number of records, for memory and disk only.",
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
    """Return a size such as 4GB in bytes; None, for the machine's own limit, where none is stated.

    Raises:
        ParameterError: it is no size.
    """
    from dpcore.resources.cost_estimate import read_memory  # imported where it is asked for

    return None if text is None else read_memory(text)


def in_number(text: str | None) -> int | None:
    """Return a number of multiplications such as 1e14; None, for the default, where none is stated.

    Raises:
        ParameterError: it is no number.
    """
    from dpcore.resources.cost_estimate import read_work

    return None if text is None else read_work(text)


def limited(
    spec: Spec, memory: str | None, work: str | None, expected: int | None, *, useless: bool
) -> Spec:
    """Return the spec with the limits of the command line on what a run may need, and must say."""
    names = [release.name for release in spec.request.releases]
    request = Request.of(spec.request, accept_useless=names) if useless else spec.request
    limits = Limits(memory=in_bytes(memory), work=in_number(work), expected=expected)
    return attrs.evolve(spec, request=request, limits=limits)


def limit_process(resources: Resources, memory: int | None) -> None:
    """Have the system keep this process, and those that it starts, below `memory` bytes of data.

    Only where that is at least twice what the run needs: an estimate that is too low stops no one.
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


engine_option = click.option(
    "--engine", help="What holds the records: local, dask, or an admitted plugin's."
)
scheduler_option = click.option("--scheduler", metavar="ADDRESS", help="The engine's scheduler.")
local_cluster_option = click.option(
    "--local-cluster",
    metavar="N",
    type=click.IntRange(min=1),
    help="N processes on this machine in place of a scheduler.",
)
rich_role_option = click.option(
    "--rich-role",
    is_flag=True,
    help="Send a spec's query to PostgreSQL as a role that may do more there than read.",
)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`engine.yaml` next to the user's registry."""

    engine: str
    scheduler: str | None = None
    local_cluster: int | None = None


def engine_choice(
    engine: str | None,
    scheduler: str | None,
    local_cluster: int | None,
    memory: int | None = None,
) -> EngineChoice | None:
    """What the command line says, else the operator's file `dpcore/engine.yaml`; None: neither.

    Raises:
        RequestError: options without an engine.
        RegistryError: no one admitted provides it.
    """
    if engine is None:
        need(
            scheduler is None and local_cluster is None,
            RequestError,
            "--scheduler and --local-cluster are of an engine: add --engine",
        )
        # The operator's own folder, never the working directory or the spec: where records are held
        # is for the operator only to say.
        path = user_file().with_name("engine.yaml")
        if not path.exists():
            if memory is None:
                return None
            from dpcore.private.engines.choice import Local

            return Local(memory=memory)
        node = read(path)
        with locate_errors(node):
            settings = convert(node, _File)
            return _choice(settings.engine, settings.scheduler, settings.local_cluster, memory)
    return _choice(engine, scheduler, local_cluster, memory)


def statements_of(
    spec: Spec, plan: Plan, engine: str | None, rich_role: bool = False
) -> tuple[str, ...]:
    """Return what an engine would ask a server: nothing where none is named. No record is read.

    Raises:
        RequestError: the engine cannot say what the plan asks.
        SourceError: the source, whose types an engine may ask for, cannot be opened.
    """
    if engine is None or (choice := engine_choice(engine, None, None)) is None:
        return ()
    from dpcore.private.workload import workload_of

    domain, refuse = spec.request.domain, spec.request.records.on_invalid == "refuse"
    source = open_source(
        spec.source, spec.folder, spec.csv, domain, refuse=refuse, total=not refuse,
        rich_role=rich_role,
    )  # fmt: skip
    return choice.explain(workload_of(plan.schedule, source, plan.randomness))


def _choice(
    engine: str, scheduler: str | None, local_cluster: int | None, memory: int | None
) -> EngineChoice:
    kind: type[EngineChoice] = Registry.default().component(ENGINE, engine)
    return kind(scheduler=scheduler, workers=local_cluster, memory=memory)
