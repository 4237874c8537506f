"""DualRegression: what the sound and the printed form share: three releases and one model."""

from abc import abstractmethod
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Public, Query, Records
from dpcore.checks import positive
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore.errors import UnfitTargetError
from dpcore.learners.conversation import Conversation, Transcript
from dpcore.mechanism import AnyMechanism
from dpcore.models import ProbabilityModel
from dpcore.randomness import LearnerRandomness
from dpcore_ntk.dual_model import DualModel, dual_coefficients
from dpcore_ntk.inputs import Inputs
from dpcore_ntk.kernel import ntk_matrix
from dpcore_ntk.neurons import Neurons, optional_count
from dpcore_ntk.targets import Targets


@attrs.frozen(kw_only=True)
class DualRegression(Conversation):
    """Asks for moments of the kernel matrix, the inputs and the labels, each once.

    Args:
        neurons: m; infinitely many, for which S = I, if None.
        regularization: lambda > 0, of K + lambda I, in units of the kernel: `norm` to the fourth.
    """

    publishes: ClassVar[type[Any]] = ProbabilityModel

    neurons: int | None = attrs.field(default=None, validator=optional_count)
    regularization: float = attrs.field(validator=positive)

    @abstractmethod
    def queries(self, public: Public) -> tuple[Query, Query, Query]:
        """Return the queries `kernel`, `inputs` and `labels`, in that order."""

    @abstractmethod
    def solved(self, mechanism: AnyMechanism) -> tuple[float, int | None]:
        """Return what to add to the released moments, and k where their inverse may be made
        unbiased.
        """

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return the neurons, and a few matrices of all pairs of records."""
        records, width = domain.at_most or 0, domain.width + 1
        neurons = self.neurons or 0
        return 8 * (3 * neurons * width + 6 * records**2), neurons * width**2 + records**3

    def drawn(self, public: Public) -> Neurons:
        """Return the neurons, drawn from the public randomness: the same at every call."""
        return Neurons.draw(self.neurons, Inputs(domain=public.domain), public.randomness)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """Return what is asked for, as it is."""
        if query.name == "kernel":
            return ntk_matrix(records.features, self.drawn(public).hidden(records.features))
        if query.name == "inputs":
            return records.features
        if query.distance is Distance.HAMMING:
            # Randomized response works on categories, so that
            # labels leave as the numbers of their classes.
            classes: Any = public.domain.labels
            return np.asarray(classes.codes(records.labels), dtype=np.float64)
        return Targets(domain=public.domain).indicators(records.labels)

    def model(self, state: Transcript) -> DualModel:
        """Released inputs with the coefficients that released moments and labels give."""
        # Everything from here on is a function of answers and public facts.
        kernel, inputs, labels = state.answers
        ridge, samples = self.solved(kernel.mechanism)
        return DualModel(
            domain=state.public.domain,
            neurons=self.drawn(state.public),
            points=inputs.value,
            coefficients=dual_coefficients(
                kernel.value, ridge, samples, released_targets(labels, state.public)
            ),
        )


def asked(
    public: Public,
    kernel: Distance,
    mechanism: AnyMechanism,
    inputs: Distance,
    labels: Distance,
    largest: float | None = None,
) -> tuple[Query, Query, Query]:
    """Return the kernel matrix, with what its mechanism must know; the inputs; the labels.

    Args:
        largest: No entry of the kernel matrix is larger.
    """
    # Only kernels that bound their entries say a mechanism the range of them.
    within = None if largest is None else (-largest, largest)
    count, width = public.domain.records, public.domain.width
    square = (count, count)
    return (
        Query(name="kernel", shape=square, distance=kernel, mechanism=mechanism, within=within),
        Query(name="inputs", shape=(count, width), distance=inputs),
        _labels(public, labels),
    )


def _labels(public: Public, distance: Distance) -> Query:
    """Return the labels: one number a record, or a class, or an indicator for each class.

    Raises:
        UnfitTargetError: categories are wanted, and the target is a range.
    """
    domain = public.domain
    if distance is not Distance.HAMMING:
        shape = (domain.records, Targets(domain=domain).count)
        return Query(name="labels", shape=shape, distance=distance)
    if not domain.classes:
        raise UnfitTargetError("labels in hamming distance need a target with classes")
    return Query(
        name="labels",
        shape=(domain.records,),
        distance=distance,
        values="integers",
        within=(0, domain.classes - 1),
        mechanism=RandomizedResponse(categories=domain.classes),
    )


def released_targets(labels: Answer, public: Public) -> NDArray[np.float64]:
    r"""Unbiased targets from released labels, shape (n, C).

    A category reported with randomized response is its own with probability p and each other with
    p', so that :math:`(e_c-p')/(p-p')` has the true indicator as its mean.
    """
    targets = Targets(domain=public.domain)
    if labels.query.distance is not Distance.HAMMING:
        return labels.value - targets.centre
    classes = public.domain.classes
    indicators = np.asarray(labels.value[:, None] == np.arange(classes), dtype=np.float64)
    if isinstance(labels.mechanism, RandomizedResponse):
        # p' and p of randomized response at the epsilon that it was calibrated to.
        odds = np.exp(-(labels.mechanism.epsilon or 0.0))
        p_other = odds / (1 + (classes - 1) * odds)
        p_true = 1 / (1 + (classes - 1) * odds)
        indicators = (indicators - p_other) / (p_true - p_other)
    if targets.several:
        return indicators - targets.centre
    # Two classes become one target: +1 for the second and -1 for the first.
    return indicators[:, 1:] - indicators[:, :1]
