"""`builders`: make plans, files and folders that many tests need alike."""

import attrs
import numpy as np

from dpcore import REPLACE_ONE, PrivacyBudget, PublicRandomness, SecretRandomness, price
from dpcore.claims.mechanisms.gaussian import Gaussian

from doubles import LabelMean, LabelMeanBound, domain


def price_request(*, epsilon=1.0, delta=1e-5, **fields):
    """The plan of a request; unless reported otherwise, `doubles.domain()` under replace-one."""
    defaults = {
        "domain": domain(),
        "adjacency": REPLACE_ONE,
        "budget": PrivacyBudget(epsilon=epsilon, delta=delta),
    }
    return price(**{**defaults, **fields})


def with_queries(guarantee, *queries):
    """The guarantee, with what holds of each query replaced."""
    return attrs.evolve(guarantee, basis=attrs.evolve(guarantee.basis, queries=queries))


def price_learner(learner, **fields):
    """The plan of one learner, with Gaussian noise unless reported otherwise."""
    return price_request(**{"learner": learner, "mechanism": Gaussian(), **fields})


def price_label_mean(**fields):
    """The plan of the mean of labels; `validity` is that of its bound."""
    bound = LabelMeanBound(**{key: fields.pop(key) for key in ("validity",) if key in fields})
    return price_learner(**{"learner": LabelMean(), "bound": bound, **fields})


def price_on_table(learner, records=400, *, adjacency=REPLACE_ONE, **fields):
    """The plan of one learner for `doubles.table(records)`: exactly so many, or at most."""
    count = {"exact": records} if adjacency.replaces else {"exact": None, "limit": records}
    defaults = {
        "domain": attrs.evolve(domain(), **count),
        "randomness": PublicRandomness(7),
        "epsilon": 2.0,
    }
    return price_learner(learner, adjacency=adjacency, **{**defaults, **fields})


def answer_bytes(plan, source, engine=None, seed=5):
    """Run a plan of one release with known randomness, and return the bytes of its answers."""
    outcome = plan.run(source, secret=SecretRandomness.rehearsal(seed), engine=engine)
    return b"".join(np.asarray(answer.value).tobytes() for answer in outcome.answers["release"])
