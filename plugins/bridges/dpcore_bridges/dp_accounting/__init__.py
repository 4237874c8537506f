"""dp-accounting: events in its language and back, and dpcore's accountants behind its interface.

Needs the extra `dp-accounting`. Its events state noise relative to C, the norm of what one record
contributes: adding or removing a record moves a sum by C, replacing one by 2 C. Here a factor of
two is never left to the reader: every translation is for one relation.
"""

from dpcore_bridges.dp_accounting.accountant import DpcoreAccountant as DpcoreAccountant
from dpcore_bridges.dp_accounting.reading import from_dp_event as from_dp_event
from dpcore_bridges.dp_accounting.relations import (
    adjacency_of as adjacency_of,
    relation_of as relation_of,
)
from dpcore_bridges.dp_accounting.spending import spend as spend
from dpcore_bridges.dp_accounting.writing import to_dp_event as to_dp_event
