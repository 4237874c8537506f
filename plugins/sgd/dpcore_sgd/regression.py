r"""Stochastic gradient descent on features, published once with noise.

From w = 0, each step takes `batch` rows and sets

.. math:: w\leftarrow\Pi_R\Big((1-\eta\lambda)w-\tfrac\eta b\sum_i
          \mathrm{clip}_{L/\|\phi_i\|}(\phi_i\cdot w-y_i)\,\phi_i\Big).

Wang & Guo's Algorithm 1 is `order: with_replacement`, `clip: none`, `average: 0`.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, OneShot, Public, Query, Range, Records
from dpcore.checks import non_negative, one_of, positive, positive_integer, probability
from dpcore.errors import NoClaimError, ParameterError
from dpcore.interval import NoiseDistribution
from dpcore.models import FeatureMap, LinearModel, ScoringModel
from dpcore.randomness import LearnerRandomness
from dpcore.sampling import Order
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.learners.even_noise import EvenNoise, even_noise
from dpcore_sgd.block_descent import Descent, FeatureRows, descend
from dpcore_sgd.descent import StepDiameter

_COUNT = 250  # frequencies of the default features
_NOISE, _AT, _POWER = 0.07, 1000.0, 0.25  # the default step: see Regression.step
_LARGEST = 0.5  # of the default step, over kappa^2

_optional = attrs.validators.optional


def _clip(instance: Any, attribute: Any, value: Any) -> None:
    if value == "none":
        return
    if isinstance(value, str):
        raise ParameterError(type(instance).__name__, "a number > 0 or 'none'", "clip", value)
    positive(instance, attribute, value)


@attrs.frozen(kw_only=True)
class Regression(OneShot):
    r"""Least squares by stochastic gradients, output perturbation.

    Total: a finite number of bounded steps from zero, for every dataset; the bounds refuse
    parameters at which steps could grow.

    Args:
        features: Map from encoded columns to features; 500 cosines and sines of a Gaussian kernel
            as wide as the root of the number of columns if None.
        order: `shuffled`, a fresh secret permutation for every pass; `cyclic`, rows as the runtime
            has shuffled them once; `with_replacement`, as printed.
        passes: How often every row is used, on average; may be a fraction.
        steps: T instead of `passes`.
        batch: Rows of one step.
        rate: eta; if None, `step` says it from public facts.
        clip: Most a row's gradient may be, over M kappa, so that 1 is what a gradient can be at
            w = 0; or `none`.
        average: Proportion of the last iterates that are averaged: 1 all, 0 the last one only.
        radius: R, iterates are projected on this ball; none if None.
        ridge: lam >= 0.
    """

    bounds: ClassVar[tuple[str, ...]] = ("sgd.path", "sgd.passes")
    total: ClassVar[bool] = True
    publishes: ClassVar[type[Any]] = ScoringModel

    features: FeatureMap | None = None
    order: Literal["shuffled", "cyclic", "with_replacement"] = attrs.field(
        default="shuffled", validator=one_of("shuffled", "cyclic", "with_replacement")
    )
    passes: float = attrs.field(default=10.0, validator=positive)
    steps: int | None = attrs.field(default=None, validator=_optional(positive_integer))
    batch: int = attrs.field(default=1, validator=positive_integer)
    rate: float | None = attrs.field(default=None, validator=_optional(positive))
    clip: float | Literal["none"] = attrs.field(default=0.25, validator=_clip)
    average: float = attrs.field(default=1.0, validator=probability)
    radius: float | None = attrs.field(default=None, validator=_optional(positive))
    ridge: float = attrs.field(default=0.0, validator=non_negative)

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return bytes and operations: features as made and as kept, and every step's rows."""
        records, width = domain.at_most or 0, int(self.map(domain).width(domain))
        rows = (self.steps or 0) * self.batch or math.ceil(min(self.passes * records, 2.0**63))
        # A map that a field holds is counted once already, with what it takes to draw it.
        copies, drawing = (1, 0) if self.features else (2, width * domain.width)
        numbers = width * (copies * records + self.block(width)) + drawing + 3 * rows
        return 8 * numbers, rows * width * (2 + self.block(width)) + records * drawing

    def map(self, domain: Domain) -> FeatureMap:
        """Return the feature map in use."""
        return self.features or CosSin(count=_COUNT, bandwidth=math.sqrt(len(domain.columns)))

    def count(self, domain: Domain) -> int:
        """Return T; it needs the exact public number of records."""
        records = domain.records
        return self.steps or max(1, round(self.passes * records / self.batch))

    def step(self, public: Public) -> float:
        r"""Return eta as given, or such that noise costs a prediction about 0.07 (1000/n)^{1/4} M.

        For p passes of gradients clipped at L, averaged with share s, and a target mu:
        :math:`\eta=0.07(1000/n)^{1/4}\mu M/(2L\kappa\,p\,s)`, at most :math:`1/(2\kappa^2)`. One
        choice for every table; no claim rests on it.

        Raises:
            NoClaimError: there is neither a rate nor a budget with a delta.
        """
        if self.rate is not None:
            return self.rate
        # Without a Gaussian budget there is no mu to plan
        # by, and a guess would be a hidden default.
        if public.mu is None:
            raise NoClaimError(
                "sgd.regression plans its step by a Gaussian budget: give a rate", field="rate"
            )
        domain = public.domain
        kappa = self.map(domain).norm(domain)
        passes = max(1.0, self.count(domain) * self.batch / domain.records)
        # Averaging divides what a use of the record moves:
        # by about two for many passes, not at all for one.
        fraction = 1 - self.average * (passes - 1) / (2 * passes)
        relative = 1.0 if self.clip == "none" else float(self.clip)
        noise = _NOISE * (_AT / domain.records) ** _POWER
        rate = noise * public.mu / (2 * relative * passes * fraction)
        return float(min(rate, _LARGEST) / kappa**2)

    def diameter(self, public: Public) -> StepDiameter:
        """Return what bounds read of this learner: the effect of one use of a record at a step."""
        domain = public.domain
        kappa = self.map(domain).norm(domain)
        steps = self.count(domain)
        # The field is relative; the bound needs L in units of a gradient, kappa M at w = 0.
        clip = math.inf if self.clip == "none" else self.clip * domain.label_bound * kappa
        return StepDiameter(
            rate=self.step(public),
            kappa=kappa,
            label_bound=domain.label_bound,
            steps=steps,
            batch=self.batch,
            ridge=self.ridge,
            clip=clip,
            radius=math.inf if self.radius is None else self.radius,
            averaged=max(1, math.ceil(self.average * steps)),
        )

    def block(self, width: int) -> int:
        """Return the rows solved for at a time; with a ball one step's, so that it can project."""
        if self.radius is not None:
            return self.batch
        return max(self.batch, 64 if width < 100 else 32 if width < 500 else 16)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one query: the coefficients, in l2, over an order that the runtime draws."""
        width = self.map(public.domain).width(public.domain)
        order = Order(kind=self.order, steps=self.count(public.domain) * self.batch)
        query = Query(name="coefficients", shape=(width,), distance=Distance.L2, sampling=order)
        return (query,)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """Return the last or the mean iterate."""
        assert records.order is not None, "the query draws an order"
        diameter, domain = self.diameter(public), public.domain
        # All parameters come from `diameter`, which the bound
        # reads too: the claim is about this very descent.
        phi = self.map(domain).draw(domain, public.randomness)(records.features)
        descent = Descent(
            rate=diameter.rate,
            batch=diameter.batch,
            ridge=diameter.ridge,
            clip=diameter.clip,
            radius=diameter.radius,
            averaged=diameter.averaged,
        )
        block = self.block(phi.shape[1])
        return descend(FeatureRows(phi), records.labels, records.order, descent, block=block)

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Forecast the noise of coefficients and predictions."""
        if "coefficients" not in noise_distributions:
            return ()
        longest = self.map(public.domain).norm(public.domain)
        return (even_noise(noise_distributions["coefficients"], longest).describe(),)

    def relative_half_width(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the widest prediction interval as a proportion of the target's range."""
        labels = public.domain.labels
        if "coefficients" not in noise_distributions or not isinstance(labels, Range):
            return 0.0
        intervals = even_noise(
            noise_distributions["coefficients"], self.map(public.domain).norm(public.domain)
        )
        return intervals.diameter / labels.half_width if isinstance(intervals, EvenNoise) else 0.0

    def assembled(self, answers: Mapping[str, Answer], public: Public) -> LinearModel:
        """Fit with intervals: the coefficients are released as they are."""
        model = self.assemble({name: answer.value for name, answer in answers.items()}, public)
        longest = self.map(public.domain).norm(public.domain)
        return attrs.evolve(
            model, noise_intervals=even_noise(answers["coefficients"].noise_distribution, longest)
        )

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """Build the linear model in the features."""
        features = self.map(public.domain).draw(public.domain, public.randomness)
        coefficients = answers["coefficients"]
        return LinearModel(domain=public.domain, features=features, coefficients=coefficients)
