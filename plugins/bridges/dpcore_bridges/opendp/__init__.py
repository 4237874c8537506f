"""OpenDP: a plan as one of its measurements, and one of its measurements as a mechanism.

Needs the extra `opendp`, and of the host program `opendp.mod.enable_features("contrib",
"honest-but-curious")`: OpenDP takes the word of anyone who hands it a Python function. What that
word is worth here, the plan's guarantee says.
"""

from dpcore_bridges.opendp.measurement import (
    Published as Published,
    approximate_measurement as approximate_measurement,
    measurement as measurement,
    pure_measurement as pure_measurement,
    renyi_measurement as renyi_measurement,
    zcdp_measurement as zcdp_measurement,
)
from dpcore_bridges.opendp.mechanism import FromOpenDP as FromOpenDP
from dpcore_bridges.opendp.privacy_map import event_of as event_of
from dpcore_bridges.opendp.spaces import metric_of as metric_of, table_domain as table_domain
