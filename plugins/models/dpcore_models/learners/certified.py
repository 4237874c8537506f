"""CertifiedRegression: learners that publish a certified minimiser, with a public tolerance."""

from abc import abstractmethod
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Public, Query, Records
from dpcore.checks import positive
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.query import Reads
from dpcore.randomness import LearnerRandomness
from dpcore_models.learners.regression import FeatureRegression
from dpcore_models.solvers.certified import Certified
from dpcore_models.solvers.huber_ridge import HuberRidge
from dpcore_models.theorems.taper import Taper


@attrs.frozen(kw_only=True)
class CertifiedRegression(FeatureRegression):
    """Publishes the minimiser of a `Certified` problem; what is left to write is `problem`.

    No exact number of records is read. The solver's tolerance is public and grows with the largest
    number of records it must hold for: a public upper bound, or else 2^22, before which the result
    tapers off (from 2^20 records on; see `dpcore_models.theorems.taper`).

    Args:
        total_regularization: Lam > 0, of the sum form: not multiplied by the number of records.
    """

    total: ClassVar[bool] = True
    narrow_reads: ClassVar[Reads] = Reads.LOOPS

    total_regularization: float = attrs.field(validator=positive)

    @abstractmethod
    def problem(self, domain: Domain) -> Certified:
        """Return the public parameters of the minimisation."""

    def taper(self, domain: Domain) -> Taper:
        """Return the weight of the result by the number of records."""
        return Taper.at_most(domain.at_most)

    def moves(self, domain: Domain) -> ByRelation:
        """Return the movement of the published minimiser by one record, were it exact."""
        # The minimiser's norm at the most records that are computed: what the weight may scale.
        problem, taper = self.problem(domain), self.taper(domain)
        return taper.moves(problem.moves(), problem.norm(taper.records))

    def solver_error(self, domain: Domain) -> float:
        """Return the public tolerance, or infinity if none is attained on every dataset."""
        problem = self.problem(domain)
        # Which route runs is a matter of public facts, so
        # that the bound knows the tolerance of the right one.
        error_bound = problem.error if self.wide(domain) else problem.folded_error
        return error_bound(self.taper(domain).records, self.features.width(domain))

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """Return the exact minimiser to within the declared error; tapered."""
        domain = public.domain
        weight = self.taper(domain).weight(len(records))
        # Above the taper's end nothing is computed: no tolerance is proved there.
        if weight == 0:
            return np.zeros(query.shape)
        problem, tolerance = self.problem(domain), self.solver_error(domain)
        if self.wide(domain):
            minimiser = problem.solve(self.mapped(records, public), records.labels, tolerance)
        else:
            # Integers of a block are kept only where further passes will read them.
            many = query.reads is Reads.LOOPS
            minimiser = problem.solve_folded(self.folded(records, public, kept=many), tolerance)
        return weight * minimiser


@attrs.frozen(kw_only=True)
class HuberRegression(CertifiedRegression):
    r"""Minimises :math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2`.

    Args:
        clip: B > 0, in label units: residuals beyond it count linearly.
    """

    clip: float = attrs.field(validator=positive)

    def problem(self, domain: Domain) -> HuberRidge:
        """Return the public parameters of the minimisation."""
        return HuberRidge(
            kappa=self.features.norm(domain),
            label_bound=domain.label_bound,
            total_regularization=self.total_regularization,
            clip=self.clip,
        )
