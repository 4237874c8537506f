"""What several plugins share and the core never imports: solvers, theorems, frames of learners.

No component goes by a name of this distribution; its theorems do, under `dpcore theory`.
"""

from collections.abc import Mapping

from dpcore import hookimpl
from dpcore.learning.statement import Statement


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """The theorems of docs/theorems.md, as statements to evaluate."""
    from dpcore_models.theorems.statements import STATEMENTS

    return STATEMENTS
