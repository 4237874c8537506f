"""FeatureRegression: one-shot learners that publish a model linear in features."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, OneShot, Public, Query, Range, Records
from dpcore.interval import NoiseDistribution
from dpcore.models import FeatureMap, LinearModel, LinearScoreModel
from dpcore.query import Reads
from dpcore_models.learners.even_noise import EvenNoise, even_noise
from dpcore_models.solvers.short_rows import FoldedRows, ShortRows


@attrs.frozen(kw_only=True)
class FeatureRegression(OneShot):
    """Asks one query, the coefficients in l2; what is left to write is `statistic`.

    Args:
        features: Map from encoded columns to features.
    """

    publishes: ClassVar[type[Any]] = LinearScoreModel

    narrow_reads: ClassVar[Reads] = Reads.ROWS
    """How `statistic` reads the records where they may be at least as many as the features."""

    features: FeatureMap

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one query: the coefficients, in l2; it reads rows if they are fewer."""
        width = self.features.width(public.domain)
        reads = Reads.ROWS if self.wide(public.domain) else self.narrow_reads
        return (Query(name="coefficients", shape=(width,), distance=Distance.L2, reads=reads),)

    def wide(self, domain: Domain) -> bool:
        """Return whether features surely outnumber records, by public facts only.

        Then the sums of products of features are more numbers than the rows.
        """
        return domain.at_most is not None and domain.at_most < self.features.width(domain)

    def folded(self, records: Records, public: Public, *, kept: bool = False) -> FoldedRows:
        """PRIVATE: return the records as integers, of which only exact sums over blocks are seen.

        Args:
            kept: Whether many sums follow one another.
        """
        domain = public.domain
        return FoldedRows(
            records=records,
            features=self.features.drawn(domain, public.randomness),
            units=ShortRows(
                kappa=self.features.norm(domain),
                label_bound=domain.label_bound,
                width=self.features.width(domain),
            ),
            kept=kept,
        )

    def mapped(self, records: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return the records' features, shape (n, width), rows at most kappa long."""
        return self.features.drawn(public.domain, public.randomness)(records.features)

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Forecast the noise of coefficients and predictions."""
        if "coefficients" not in noise_distributions:
            return ()
        # Noise moves a prediction by at most its length times a row's, which is public.
        longest = self.features.norm(public.domain)
        return (even_noise(noise_distributions["coefficients"], longest).describe(),)

    def relative_half_width(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the widest prediction interval as a proportion of the target's range."""
        labels = public.domain.labels
        if "coefficients" not in noise_distributions or not isinstance(labels, Range):
            return 0.0
        intervals = even_noise(
            noise_distributions["coefficients"], self.features.norm(public.domain)
        )
        return intervals.diameter / labels.half_width if isinstance(intervals, EvenNoise) else 0.0

    def assembled(self, answers: Mapping[str, Answer], public: Public) -> LinearModel:
        """Fit with intervals: coefficients are released as they are."""
        model = self.assemble({name: answer.value for name, answer in answers.items()}, public)
        longest = self.features.norm(public.domain)
        return attrs.evolve(
            model, noise_intervals=even_noise(answers["coefficients"].noise_distribution, longest)
        )

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """Build the linear model in the features."""
        return LinearModel(
            domain=public.domain,
            features=self.features.drawn(public.domain, public.randomness),
            coefficients=np.asarray(answers["coefficients"], dtype=np.float64),
        )
