"""What tests of statistics share: plans of one learner, releases at known randomness, and bands."""

import attrs
import numpy as np
from scipy import stats

from dpcore import ADD_REMOVE, Answer, Domain, PublicRandomness, Range, SecretRandomness
from dpcore.encoding.tables import project_table

from builders import price_learner

LEVEL = 0.95
ERROR = 1e-6  # of one statistical check, by its exact binomial band


def domain(records=None, column=None, **more):
    """A domain without a target: one column `x`, from 0 to 10 unless another is given."""
    return Domain(columns={"x": column or Range(0, 10), **more}, exact=records)


def plan(learner, mechanism, facts, adjacency=ADD_REMOVE, epsilon=1.0, delta=1e-6):
    """One learner, calibrated."""
    return price_learner(
        learner,
        domain=facts,
        adjacency=adjacency,
        mechanism=mechanism,
        randomness=PublicRandomness(1),
        epsilon=epsilon,
        delta=delta,
    )


@attrs.frozen
class Lab:
    """One calibrated release, whose exact statistic of one table is computed once."""

    scheduled: object
    value: object

    @classmethod
    def of(cls, priced, table):
        (scheduled,) = priced.schedule.releases
        public = scheduled.public(PublicRandomness(1))
        (query,) = scheduled.learner.queries(public)
        records = project_table(priced.request.domain, table)
        secret = SecretRandomness.rehearsal(0).learner(0, query.name, 1)
        return cls(scheduled, scheduled.learner.statistic(query, records, public, secret))

    def published(self, seed):
        """The tables that one draw of the noise leads to."""
        (planned_query,) = self.scheduled.queries.values()
        noise = SecretRandomness.rehearsal(seed).noise(0, planned_query.query.name, 1)
        return self.of_answer(planned_query.release(self.value, planned_query.query, noise))

    def of_answer(self, value):
        """The tables that follow from one answer."""
        (planned_query,) = self.scheduled.queries.values()
        answer = Answer(
            query=planned_query.query,
            number=1,
            value=value,
            mechanism=planned_query.mechanism,
            noise_distribution=planned_query.noise_distribution,
        )
        learner = self.scheduled.learner
        state = learner.start(self.scheduled.public(PublicRandomness(1)))
        return learner.model(learner.update(state, answer))


def hits(lab, truth, draws, joint=False, start=0):
    """How often each row's interval holds its truth (or all of them, together)."""
    found = np.zeros(1 if joint else len(truth), dtype=int)
    truth = np.asarray(truth, dtype=float)
    for seed in range(start, start + draws):
        (figures,) = lab.published(seed).tables.values()
        inside = (figures.low <= truth + 1e-9) & (truth <= figures.high + 1e-9)
        found += inside.all() if joint else inside
    return found


def band(draws, level=LEVEL):
    """Least and most hits of an interval that holds at exactly `level`, but for `ERROR`."""
    distribution = stats.binom(draws, level)
    return distribution.ppf(ERROR), distribution.isf(ERROR)
