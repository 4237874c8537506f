"""The engine of a run, from the command line or the operator's file; never from a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from dpcore.errors import RequestError, need
from dpcore.registry.kinds import ENGINE
from dpcore.registry.registry import Registry
from dpcore.registry.user_folder import user_file
from dpcore.sources.opening import open_source
from dpcore.yaml.conversion import convert
from dpcore.yaml.error_positions import locate_errors
from dpcore.yaml.located import read

if TYPE_CHECKING:
    from dpcore.claims.plan.plan import Plan
    from dpcore.private.engines.choice import EngineChoice
    from dpcore.specs.spec import Spec

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
    """`engine.yaml` beside the user's registry."""

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
        RegistryError: nobody admitted provides it.
    """
    if engine is None:
        need(
            scheduler is None and local_cluster is None,
            RequestError,
            "--scheduler and --local-cluster are of an engine: add --engine",
        )
        # The operator's own folder, never the working directory or the spec: where records are held
        # is for the operator alone to say.
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
    """What an engine would ask a server: nothing where none is named. No record is read.

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
    return choice.explain(workload_of(plan.schedule, source, plan.coins))


def _choice(
    engine: str, scheduler: str | None, local_cluster: int | None, memory: int | None
) -> EngineChoice:
    kind: type[EngineChoice] = Registry.default().component(ENGINE, engine)
    return kind(scheduler=scheduler, workers=local_cluster, memory=memory)
