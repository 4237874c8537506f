"""Where a plan's records live, in OpenDP's words: a domain of tables, and a distance between them.

OpenDP compares domains by name only and does not look at members: the name carries everything that
is declared, and the plan itself looks at what it is given.
"""

from collections.abc import Mapping
from typing import Any

from opendp.domains import user_domain
from opendp.metrics import change_one_distance, symmetric_distance
from opendp.mod import Domain as OpenDPDomain, Metric

from dpcore import ADD_REMOVE, REPLACE_ONE, Adjacency, Plan
from dpcore.encoding.blocks import fit
from dpcore.encoding.cells import columns_by_name
from dpcore.errors import AdjacencyError


def metric_of(adjacency: Adjacency) -> Metric:
    """Neighbours are at distance 1: symmetric distance under add/remove, change-one distance under
    replace-one. Both are about multisets; a run shuffles its records first.

    Raises:
        AdjacencyError: the relation protects less than a record, and no metric counts that.
    """
    if adjacency == ADD_REMOVE:
        return symmetric_distance()
    if adjacency == REPLACE_ONE:
        return change_one_distance()
    raise AdjacencyError(
        f"OpenDP has no metric in which neighbours under {adjacency} are one apart: only "
        f"{ADD_REMOVE} and {REPLACE_ONE} translate"
    )


def table_domain(plan: Plan) -> OpenDPDomain:
    """Tables (columns by name, or a frame) that fit the plan's declared domain.

    What a run does with a record that does not fit is part of the domain: under `refuse` it is no
    member, and the measurement fails on it; under `project` it is one.
    """
    declared = plan.request.domain
    strict = plan.request.records.on_invalid == "refuse"

    def member(table: object) -> bool:
        columns: Any = columns_by_name(table)
        if not (isinstance(columns, Mapping) or hasattr(columns, "columns")):
            return False
        if any(name not in columns for name in declared.raw):
            return False
        # under `project` any cells are a member's: the run moves them into the domain
        return not (strict and fit(declared, [columns]).misfits)

    treatment = "refused" if strict else "projected"
    return user_domain(f"dpcore.Table({declared!r}, what does not fit is {treatment})", member)
