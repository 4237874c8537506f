r"""Gradient steps on sums of clipped gradients, of any differentiable model.

A step asks for the exact sum of the records' gradients at the present weights, each clipped to C,
and moves the weights along the noisy answer over a public divisor: the declared number of records,
or of a batch. With bands an answer weighs the last sums too, and the step is along what everyone
solves for (`dpcore_models.solvers.banded`; theorem T16, with L the clip). What one record moves a
sum by is in the core's bound, whatever the model is and whatever computed the gradients: they are
handed over as integers, whose length the core checks.

Where the clip follows a quantile, the sums are of gradients over the present clip, times the first
one, and are multiplied by it after they are solved.

Everything after an answer is additions and products, number by number in doubles, so that the
weights are the same bits wherever a run is replayed.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Public, Records, SummingLearner, SumQuery
from dpcore.checks import fraction, positive, positive_integer
from dpcore.domain import Classes
from dpcore.errors import UnknownCountError, need
from dpcore.interval import NoiseDistribution
from dpcore.learners.clipping import IntegerRows
from dpcore.models import ScoringProbabilityModel
from dpcore.randomness import Stream
from dpcore.sampling import Cyclic, Poisson
from dpcore_models.solvers.banded import Solved
from dpcore_training.bands import best_bands, certificate
from dpcore_training.model import Network, NetworkModel
from dpcore_training.proposal import COUNT_WEIGHT, Proposer, declared, gradient_weight

MOST_WEIGHTS = 10**6
MOST_NUMBERS = 25 * 10**7
"""Of all answers of a run together, which are kept and published: 2 GB."""
MOST_BANDS = 1 << 12
MOST_STEPS_OF_BANDS = 10**6
"""Of a run with bands, which are searched and certified step by step."""

MOST_STRETCHES = 64.0
"""An adaptive clip stays between 2^-64 and 2^64 times the first one."""

_PACE = 0.3  # log2 of the clip moves by this, times how far the share is off
_BLOCK = 1 << 22  # numbers of the rows that are held at a time
_FEWEST, _MOST = 8, 256  # records of a block


@attrs.frozen(kw_only=True, eq=False)
class State:
    """Between two steps.

    Args:
        total: The sum of the weights that are averaged, so far.
        stretches: log2 of what the first clip is multiplied by; 0 where it is fixed.
    """

    public: Public
    query: SumQuery
    weights: NDArray[np.float64]
    velocity: NDArray[np.float64]
    solved: Solved
    total: NDArray[np.float64]
    steps: int = 0
    stretches: float = 0.0


@attrs.frozen(kw_only=True)
class GradientDescent(SummingLearner, Network):
    """Descend along noisy sums of gradients; a subclass says of what model.

    Sums are divided by public numbers: the declared number or limit of records, or `batch`. The
    model is the mean of the weights of the last steps. Where an earlier release of the same model
    is among the inputs, its weights are the start.

    Total, and its sums are exact: see `SummingLearner`. A record whose class is unknown or whose
    gradient is not finite adds zeros.

    Args:
        steps: How many noisy sums are released.
        batch: How many records a step sees on average: each is drawn with probability
            `batch` / records, by randomness of its own. All of them if None; with bands, all of a
            turn.
        bands: How many sums an answer weighs. Above 1 every record draws one of so many turns and
            is seen in that turn only, and noise is correlated from step to step, so that most of
            it cancels in the weights. 1: every step's noise is its own.
        rate: By what multiple of the mean gradient the first step moves the weights.
        decay: What proportion of the rate is gone at the last step, in [0, 1): it falls in a line.
        momentum: What proportion of the last step is added to each step, in [0, 1).
        clip: C: how long a record's gradient may be.
        quantile: The proportion of gradients that the clip leaves as they are: it starts at `clip`
            and follows that quantile of their lengths, which noisy counts in the same answers say.
            None: it is fixed.
        average: The proportion of the steps, the last ones, whose weights are averaged; 0 for the
            last weights only.
    """

    publishes: ClassVar[type[Any]] = ScoringProbabilityModel

    steps: int = attrs.field(default=60, validator=positive_integer)
    batch: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )
    bands: int = attrs.field(default=1, validator=positive_integer)
    rate: float = attrs.field(default=1.0, validator=positive)
    decay: float = 0.0
    momentum: float = 0.0
    clip: float = attrs.field(default=1.0, validator=positive)
    quantile: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(fraction)
    )
    average: float = 0.5

    def __attrs_post_init__(self) -> None:
        for name in ("decay", "momentum", "average"):
            part = getattr(self, name)
            need(0 <= part < 1, "training", "a share in [0, 1)", name, part)
        most = min(self.steps, MOST_BANDS) if self.steps <= MOST_STEPS_OF_BANDS else 1
        need(
            self.bands <= most,
            "training",
            f"1 to {most} at {self.steps} steps",
            "bands",
            self.bands,
        )

    @abstractmethod
    def initial(self, stream: Stream, domain: Domain) -> NDArray[np.float64]:
        """Return the weights before the first step, shape (size,), from public randomness."""

    @abstractmethod
    def gradients(
        self, weights: NDArray[np.float64], block: Records, targets: NDArray[Any], public: Public
    ) -> Iterator[NDArray[np.floating]]:
        """PRIVATE, pure: of each record the gradient of its own loss, shape (size,).

        Args:
            targets: Of classes their places, int32, -1 where unknown; else labels over their
                largest size, in [-1, 1]. Shape (rows,).
        """

    def divisor(self, domain: Domain) -> float:
        """Return how many records a step sees on average, at the public number or limit.

        Raises:
            UnknownCountError: there is neither.
            ParameterError: a batch has more than all records of a turn.
        """
        message = "training divides by a public number of records: declare one, or at_most"
        need(domain.at_most is not None, UnknownCountError, message)
        records = domain.at_most or 0
        need(
            self.batch is None or self.batch <= records // self.bands,
            "training",
            f"at most the {records // self.bands} records{'' if self.bands == 1 else ' of a turn'}",
            "batch",
            self.batch,
        )
        return records / self.bands if self.batch is None else self.batch

    def _sampling(self, domain: Domain) -> Poisson | Cyclic | None:
        """Which records a step sees: each at most once while its sum is still weighed."""
        part = self.divisor(domain) * self.bands / (domain.at_most or 1)
        if self.bands > 1:
            return Cyclic(groups=self.bands, probability=min(1.0, part))
        return None if self.batch is None else Poisson(probability=part)

    def queries(self, public: Public) -> tuple[SumQuery, ...]:
        """Return the sum of gradients, once a step.

        Raises:
            ParameterError: the model or all answers together are too large.
            UnknownCountError: no number of records is public.
        """
        domain = public.domain
        size, sampling = self.size(domain), self._sampling(domain)
        for name, number, most in (
            ("weights", size, MOST_WEIGHTS),
            ("steps times weights", size * self.steps, MOST_NUMBERS),
        ):
            need(1 <= number <= most, "training", f"1 to {most}", name, number)
        query = SumQuery(
            name="gradient",
            shape=(size if self.quantile is None else size + 1,),
            distance=Distance.L2,
            at_most=self.steps,
            sampling=sampling,
            sum=declared(self.clip),
            bands=None if self.bands == 1 else self._strategy,  # type: ignore[arg-type]
        )
        return (query,)

    @property
    def _strategy(self) -> tuple[int, ...]:
        return (1,) if self.bands == 1 else best_bands(self.bands, self.steps)

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """With bands, how much noise running totals of gradients carry, in clips, and how little
        they could."""
        distribution = noise_distributions.get("gradient")
        if self.bands == 1 or distribution is None:
            return ()
        noise = distribution.std / (self.clip * gradient_weight(self.quantile))
        totals = certificate(self._strategy, self.steps)
        return (
            f"Running totals of gradients carry noise of {noise * totals.error:.4g} clips in each "
            f"weight, at most (root mean square over {self.steps} steps); no strategy with "
            f"columns as long comes below {noise * totals.least:.4g}, and independent noise in the "
            f"same turns carries {noise * totals.independent:.4g}.",
        )

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return a block of gradients as doubles and integers, and all answers; products of a
        run.
        """
        size, records = self.size(domain), int(self.batch or domain.at_most or 0)
        memory = size * (24 * _rows_of_block(size) + 16 * self.steps + 8 * self.bands)
        return memory, 8 * size * records * self.steps

    def start(self, public: Public) -> State:
        """The weights of an earlier release of this model, or its own by public randomness."""
        (query,) = self.queries(public)
        weights = self.initial(public.randomness.stream("training.start"), public.domain)
        size = self.size(public.domain)
        need(
            weights.shape == (size,) and bool(np.isfinite(weights).all()),
            "training",
            "finite weights, as many as the model declares",
            "start",
            str(weights.shape),
        )
        for item in public.inputs.values():
            if isinstance(item, NetworkModel) and item.weights.shape == (size,):
                weights = item.weights
        zeros = np.zeros(size)
        return State(
            public=public,
            query=query,
            weights=weights,
            velocity=zeros,
            solved=Solved(self._strategy),
            total=zeros,
        )

    def ask(self, state: State) -> SumQuery | None:
        """Return the sum of gradients at the present weights."""
        if state.steps == self.steps:
            return None
        stretch = {} if self.quantile is None else {"stretch": power_of_two(state.stretches)}
        return state.query.with_args({"weights": state.weights, **stretch})

    def update(self, state: State, answer: Answer) -> State:
        """Return a step along the answer over the public divisor."""
        # Products and sums by number only: the same bits on every machine.
        solved = state.solved.after(answer.value)
        mean = solved.recent[0] / self.divisor(state.public.domain)
        gradient, stretches = self._gradient(mean, state.stretches)
        velocity = self.momentum * state.velocity + gradient
        rate = self.rate * (1 - self.decay * state.steps / max(1, self.steps - 1))
        weights = state.weights - rate * velocity
        steps = state.steps + 1
        total = state.total + weights if steps > self.steps - self._averaged else state.total
        return attrs.evolve(
            state,
            weights=weights,
            velocity=velocity,
            solved=solved,
            total=total,
            steps=steps,
            stretches=stretches,
        )

    def _gradient(
        self, mean: NDArray[np.float64], stretches: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return the mean clipped gradient, and log2 of the next clip over the first."""
        if self.quantile is None:
            return mean, stretches
        gradient = mean[:-1] * (power_of_two(stretches) / gradient_weight(self.quantile))
        excess = float(mean[-1]) / (COUNT_WEIGHT * self.clip)
        # A share is off by at most 1, whatever the noise says.
        moved = stretches - _PACE * min(1.0, max(-1.0, excess))
        return gradient, min(MOST_STRETCHES, max(-MOST_STRETCHES, moved))

    @property
    def _averaged(self) -> int:
        return max(1, int(self.average * self.steps))

    def block_rows(self, query: SumQuery) -> int:
        """Fewer records at a time where the model is large."""
        return _rows_of_block(query.real_size)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> IntegerRows:
        """PRIVATE: return every record's gradient at the weights that the query says, as
        integers.
        """
        assert query.args is not None, "a query says its weights"
        targets = targets_of(block.labels, public.domain)
        gradients = self.gradients(query.args["weights"], block, targets, public)
        rows = Proposer(
            sum=query.sum,
            size=query.real_size,
            quantile=self.quantile,
            stretch=query.args.get("stretch", 1.0),
        ).rows(gradients, len(block))
        if public.domain.classes:
            rows.integers[targets < 0] = 0
        return rows

    def model(self, state: State) -> NetworkModel:
        """Return the mean of the last weights."""
        weights = state.total / self._averaged
        return NetworkModel(domain=state.public.domain, network=self, weights=weights)


def targets_of(labels: NDArray[np.float64], domain: Domain) -> NDArray[Any]:
    """PRIVATE: places of classes, int32, -1 where unknown; else labels in [-1, 1]."""
    if not isinstance(domain.labels, Classes):
        return labels / domain.label_bound
    indicators = domain.labels.one_hot(labels)
    places = np.where(indicators.any(axis=1), indicators.argmax(axis=1), -1)
    return places.astype(np.int32)


def power_of_two(exponent: float) -> float:
    """2 to the nearest eighth of the exponent, by roots and products: the same bits everywhere."""
    whole, eighths = divmod(round(8 * exponent), 8)
    root = math.sqrt(math.sqrt(math.sqrt(2.0)))
    return math.ldexp(math.prod([root] * eighths), whole)


def _rows_of_block(size: int) -> int:
    return min(_MOST, max(_FEWEST, _BLOCK // size))
