"""Writes docs/records/acceptance.md: what the plan says to every learner, bound and mechanism.

    python tests/whole/acceptance.py

Nothing here decides: each cell is what `price` answers to a small example of the three.
"""

import inspect
from pathlib import Path

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    Registry,
    Release,
    Sensitivity,
    price,
)
from dpcore.errors import NoClaimError, SpecError, UnknownCountError
from dpcore.guarantee import NO_FAILURE, Status
from dpcore.mechanism import free_field
from dpcore.registry.kinds import BOUND, LEARNER, MECHANISM
from dpcore.sensitivity import Conditional, Refuted
from dpcore_models.features.cos_sin import CosSin
from dpcore_training.dense import DenseNetwork

PAGE = Path(__file__).parents[2] / "docs" / "records" / "acceptance.md"
FEATURES = CosSin(count=4)
LEARNERS = {
    "explainable_boosting.cyclic": {"rounds": 2},
    "hessian_mixing.newton": {},
    "kernel_ridge.huber_ridge": {"total_regularization": 50.0, "clip": 0.5},
    "kernel_ridge.ridge": {"regularization": 0.5},
    "linear.clipped_gradient": {"features": FEATURES, "steps": 5, "clip": 0.5},
    "linear.ols": {},
    "linear.output_perturbation": {
        "features": FEATURES,
        "total_regularization": 50.0,
        "clip": 0.5,
    },
    "linear.staged_gradient": {},
    "linear.sufficient_statistics": {"features": FEATURES},
    "ntk.central": {},
    "objective_perturbation.regression": {"regularization": 5.0},
    "random_features.ball_ridge": {
        "features": FEATURES,
        "total_regularization": 50.0,
        "radius": 1.0,
    },
    "random_features.huber_ridge": {
        "features": FEATURES,
        "total_regularization": 50.0,
        "clip": 0.5,
    },
    "random_features.min_norm": {"count": 8},
    "random_features.min_norm, waves: cosines": {"count": 8, "waves": "cosines"},
    "random_features.projected_min_norm": {"features": FEATURES, "radius": 1.0},
    "random_features.ridge": {"features": FEATURES, "regularization": 0.5},
    "sgd.banded": {"features": FEATURES, "steps": 4, "groups": 2, "bands": 2},
    "sgd.regression": {"features": FEATURES, "rate": 0.05, "passes": 2.0},
    "sgd.regression, as Algorithm 1": {
        "features": FEATURES,
        "rate": 0.05,
        "order": "with_replacement",
        "clip": "none",
        "average": 0.0,
        "steps": 50,
    },
    "shifted_interpolation.descent": {"steps": 20},
    "statistics.count": {"where": {"a": {"from": 0}}},
    "statistics.covariance": {"column": "a", "other": "b"},
    "statistics.distinct": {"of": ("a",), "bins": {"a": 4}},
    "statistics.group_by": {"by": ("a",), "bins": {"a": 4}, "column": "b"},
    "statistics.histogram": {"column": "a", "bins": 4},
    "statistics.marginals": {"columns": ("a", "b"), "bins": {"a": 2, "b": 2}},
    "statistics.mean": {"column": "a"},
    "statistics.quantiles": {"column": "a", "points": 5},
    "statistics.running": {"column": "a", "edges": (-1.0, 0.0, 1.0)},
    "statistics.share": {"meets": {"a": {"from": 0}}},
    "statistics.sum": {"column": "a"},
    "statistics.table": {"marginals": {"t": ("a", "b")}, "bins": {"a": 2, "b": 2}},
    "statistics.top": {"column": "a", "bins": 4, "k": 2},
    "statistics.variance": {"column": "a"},
    "statistics.workload": {"column": "a", "bins": 4},
    "synthetic.rows": {"bins": {"a": 2, "b": 2}},
    "tables.shape_functions": {},
    "training.best_run": {"candidates": (DenseNetwork(steps=1), DenseNetwork(steps=2))},
    "training.network": {"steps": 4},
}
APART = {
    "best_of",
    "explainable_boosting.printed",
    "hessian_mixing.eigenvalue",
    "linear.chosen_ridge",
    "linear.logistic",
    "ntk.printed",
    "ntk.regression",
    "statistics.bounded_mean",
    "statistics.group_errors",
    "statistics.group_parity",
    "statistics.group_rates",
    "statistics.prediction_interval",
    "statistics.private_groups",
    "statistics.private_keys",
    "statistics.ratio",
}
"""Take mechanisms of different kinds, one for each query, read another release's predictions, or
need a target of two classes; they have tests of their own."""
MECHANISMS = {
    "gaussian_sampling": {"lam0": 1.0},
    "per_query": {"questions": 3},
    "truncated_laplace": {"truncation": 1e-6},
}
NOISE = {
    "gaussian_sampling": 10,
    "ntk.gram_sampling": 10,
    "randomized_response": 1.0,
    "permute_and_flip": 1.0,
    "exponential": 1.0,
    "statistics.sparse_vector": 1.0,
}
BUDGET = PrivacyBudget(epsilon=10_000.0, delta=1e-5)
INTRODUCTION = """# What is accepted

Look up a learner here to see with which bounds and mechanisms dpcore gives a guarantee. A row of a
table has a bound, mechanisms to which the plan gives the same answer, and that answer under
replace-one and under add/remove. *The others* are the mechanisms that no other row of that bound
names.

* *accepted*: the guarantee is proved.
* *conditional*: the guarantee holds if the spec accepts the named assumptions, which no run tests.
* *refuted*: the claim is known to be false. `dpcore reproduce` by itself runs it, marked not
private.
* *refused*: there is no claim, for the [reason](#reasons) with that number.
* *does not fit*: the mechanism is for statistics of another kind, or with other values.

Notes:

* For add/remove the plan knows a public upper bound on the number of records, and for replace-one
  the exact number.
* `twice_add_remove` turns any row that is accepted under add/remove into a replace-one claim.
* A mechanism must be able to release every value that a query states. `discrete_gaussian` and
  `discrete_laplace` release whole numbers only, so they do not fit these learners, whose statistics
  are reals. What is accepted runs.
* `linear.chosen_ridge`, `best_of`, `ntk.regression` and `ntk.printed` take a mechanism of its own
  for each of their queries, and are not in the tables. [Their page](../papers.md) says what is
  accepted of the last two. `statistics.bounded_mean`, `statistics.private_groups` and
  `statistics.private_keys` have a mechanism of their own ([statistics](../statistics.md)).
  `statistics.group_errors`, `statistics.group_parity`, `statistics.prediction_interval` and
  `statistics.group_rates` read another release's predictions ([fairness](../fairness.md#publish)),
  and accept what the other statistics accept.
* `linear.logistic` needs a target of two classes ([regression tables](../regression.md)), and
  accepts what `linear.clipped_gradient` accepts of the logistic loss.
* Noise on every coordinate takes a bound in l1, l2 or linf, converted where it must be. So the
  Laplace mechanisms fit statistics in l2, with more noise than Gaussian ones in many coordinates.
* [Learners and mechanisms](matrix.md) says of every pair whether it has a price.

`tests/whole/acceptance.py` writes this page, and a test compares it with the plan.
"""


def domain(adjacency):
    """A small one, of the count that the relation makes public."""
    exact = None if adjacency is ADD_REMOVE else 50
    limit = 50 if adjacency is ADD_REMOVE else None
    columns = {"a": Range(-1, 1), "b": Range(-1, 1)}
    return Domain(columns=columns, target="y", labels=Range(-1, 1), exact=exact, limit=limit)


def answer(learner, bound, mechanism, adjacency):
    """(status, reason) of one combination under one relation."""
    facts, assumed = domain(adjacency), set()
    validity = None
    try:
        public = Public(domain=facts, randomness=PublicRandomness(0), mu=1.0)
        (query, *_) = learner.queries(public)
        found = bound.sensitivity(query, learner, public, adjacency)
        validity = found.validity if isinstance(found, Sensitivity) else None
    except UnknownCountError:
        pass
    if isinstance(validity, Conditional):
        assumed = {name for name, _ in validity.assumptions}
    if not learner.total:
        assumed.add(NO_FAILURE.name)
    options = {
        "domain": facts,
        "adjacency": adjacency,
        "budget": BUDGET,
        "releases": [Release(learner=learner, bound=bound, mechanism=mechanism)],
        "randomness": PublicRandomness(0),
    }
    try:
        plan = price(**options, accept_assumptions=assumed)
    except NoClaimError as error:
        if isinstance(validity, Refuted):
            return "refuted", validity.reason
        # "no bound of LEARNER gives a claim: BOUND: reason", "the noise exceeds ...: reason"
        return "refused", str(error).split(": ", 2 if str(error).startswith("no bound") else 1)[-1]
    except SpecError:
        return "does not fit", ""
    if plan.guarantee.status is Status.PROVED:
        return "accepted", ""
    assumptions = plan.guarantee.basis.assumptions
    return "conditional", ", ".join(assumption.name for assumption in assumptions)


def rows(registry):
    """(learner, bound, mechanisms, replace-one, add/remove), answers as (status, reason)."""
    mechanisms = {}
    for name in registry.names(MECHANISM):
        made = registry.component(MECHANISM, name)
        noise = {free_field(made): NOISE.get(name, 50.0)}
        mechanisms[name] = made(**MECHANISMS.get(name, {}), **noise)
    bounds = {name: registry.component(BOUND, name) for name in registry.names(BOUND)}
    examples = {name.split(",")[0] for name in LEARNERS}
    if lacking := {*registry.names(LEARNER)} - examples - APART:
        raise KeyError(f"give {min(lacking)} an example in LEARNERS")
    for name, fields in LEARNERS.items():
        learner = registry.component(LEARNER, name.split(",")[0])(**fields)
        for title, bound in bounds.items():
            named = inspect.isclass(getattr(bound, "learner", None))
            generic = title == "statistics.sums" and bound().is_about(learner)
            summed = title == "sum" and title in learner.bounds
            if generic or summed or (named and bound.learner is type(learner)):
                groups = {}
                for own, mechanism in mechanisms.items():
                    key = tuple(
                        answer(learner, bound(), mechanism, relation)
                        for relation in (REPLACE_ONE, ADD_REMOVE)
                    )
                    groups.setdefault(key, []).append(own)
                for key, names in sorted(groups.items(), key=lambda item: item[1]):
                    yield name, title, names, *key


def page(found):
    """The page as text, from what `rows` yields."""
    reasons = {}

    def cell(found):
        status, reason = found
        if status == "conditional":
            return f"conditional on {reason}"
        if not reason:
            return status
        return f"{status} ({reasons.setdefault(reason, len(reasons) + 1)})"

    everything = sorted({name for _, _, names, *_ in found for name in names})
    lines = ["All mechanisms: " + ", ".join(f"`{name}`" for name in everything) + ".", ""]
    for learner in dict.fromkeys(learner for learner, *_ in found):
        lines += [f"## {learner}", ""]
        lines += ["| bound | mechanisms | replace-one | add/remove |", "|---|---|---|---|"]
        own = [row for row in found if row[0] == learner]
        for bound in dict.fromkeys(bound for _, bound, *_ in own):
            about = sorted((row for row in own if row[1] == bound), key=lambda row: len(row[2]))
            for row in about:
                named = ", ".join(f"`{name}`" for name in row[2])
                if row is about[-1]:
                    named = "the others" if len(about) > 1 else "all"
                lines.append(f"| `{bound}` | {named} | {cell(row[3])} | {cell(row[4])} |")
        lines.append("")
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join([INTRODUCTION, *lines, "## Reasons", "", *notes, ""])


if __name__ == "__main__":
    PAGE.write_text(page(list(rows(Registry.default()))))
