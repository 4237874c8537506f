"""Writes docs/matrix.md: whether every learner takes every mechanism, and if not, why not.

    python tests/whole/matrix.py

Nothing here decides: each mark is what `price` answers to a small example of the two, with the
noise left free, under replace-one and under add/remove.
"""

import re
from pathlib import Path

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    PrivacyBudget,
    Range,
    Release,
    price,
)
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories
from dpcore.domain.texts import Texts
from dpcore.errors import DpcoreError, NoClaimError
from dpcore.learning.features.cos_sin import CosSin
from dpcore.registry.kinds import LEARNER, MECHANISM

from whole import acceptance

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
RELATIONS = (REPLACE_ONE, ADD_REMOVE)
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-5)
NTK = {"regularization": 500.0, "neurons": 8}
LEARNERS = {
    "linear.chosen_ridge": {"features": CosSin(count=4)},
    "ntk.printed": {**NTK, "eta_min": 0.1},
    "ntk.regression": NTK,
    "statistics.bounded_mean": {"column": "a"},
    "statistics.group_errors": {"by": ("g",)},
    "statistics.group_parity": {"by": ("g",)},
    "statistics.group_rates": {"by": ("g",), "calibration": 4},
    "statistics.private_groups": {"column": "town", "mean_of": "a"},
    "statistics.private_keys": {"column": "town"},
}
OF_A_MODEL = {"statistics.group_errors", "statistics.group_parity", "statistics.group_rates"}


def example(name, registry):
    """A small learner of a name."""
    if name == "best_of":
        candidate = registry.component(LEARNER, "linear.sufficient_statistics")
        candidates = tuple(candidate(features=CosSin(count=n)) for n in (2, 4))
        return registry.component(LEARNER, name)(candidates=candidates)
    fields = {**acceptance.LEARNERS, **LEARNERS}[name]
    return registry.component(LEARNER, name)(**fields)


def domain(name, adjacency):
    """The columns that the learner needs, and the number of records that the relation publishes."""
    columns = {"a": Range(-1, 1), "b": Range(-1, 1)}
    if name.startswith("statistics.private_"):
        columns["town"] = Texts(12)
    exact, limit = (None, 200) if adjacency is ADD_REMOVE else (200, None)
    groups = {"g": Categories(("p", "q"))} if name in OF_A_MODEL else {}
    labels = Classes(("no", "yes")) if name == "statistics.group_rates" else Range(-1, 1)
    return Domain(
        columns=columns, target="y", labels=labels, exact=exact, limit=limit, groups=groups
    )


def answer(name, mechanism, adjacency, registry):
    """(mark, reason): `yes`, `if` where an assumption must be accepted, or `no` and why."""
    learner = example(name, registry)
    releases = [Release(learner=learner, mechanism=mechanism)]
    fields = {}
    if name in OF_A_MODEL:
        model = example("linear.sufficient_statistics", registry)
        gaussian = registry.component(MECHANISM, "gaussian")()
        releases = [
            Release(learner=model, mechanism=gaussian, name="model"),
            Release(learner=learner, mechanism=mechanism, of="model"),
        ]
        fields = {"holdout": 0.25}
    assumptions = []
    while True:
        try:
            price(
                domain=domain(name, adjacency),
                adjacency=adjacency,
                budget=BUDGET,
                releases=releases,
                accept_assumptions=assumptions,
                registry=registry,
                **fields,
            )
        except NoClaimError as error:
            assumption = re.search("rests on the assumption '(.*?)'", error.message)
            if assumption is None:
                return "no", error.message
            assumptions.append(assumption[1])
        except DpcoreError as error:
            return "no", error.message
        else:
            return ("if" if assumptions else "yes"), ", ".join(assumptions)
