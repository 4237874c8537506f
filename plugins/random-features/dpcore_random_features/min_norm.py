r"""The paper's estimator as printed: min-norm interpolation of complex waves or random cosines.

Lemma 9 says :math:`\Delta_2\le 2/\sqrt{N(1-2\eta)}` for pairs of datasets that *both* have labels
of norm at most 1 and :math:`\lambda_{min}(AA^*/N)\ge1-2\eta`: conditional, as no run tests that.
`random_features.projected_min_norm` is the sound form.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Distance,
    Domain,
    Learner,
    OneShot,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import one_of, positive, positive_integer
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import ParameterError
from dpcore.models import Features, LinearNoiseModel
from dpcore.models.description import ShownModel
from dpcore.models.linear import in_blocks
from dpcore.randomness import LearnerRandomness, Stream
from dpcore.rounding import up
from dpcore.sensitivity import Conditional, Refuted
from dpcore_models.features.frequencies import gaussian_frequencies
from dpcore_models.features.turns import Turns, cosines, sines
from dpcore_random_features.solvers.kaczmarz import kaczmarz
from dpcore_random_features.solvers.min_norm import fit_min_norm

IMAGINARY = (
    "Algorithm 1 adds real noise to complex coefficients, so that their imaginary part is "
    "published exactly"
)
PUBLISHED_CODE = (
    "the published code takes 4/sqrt(N), made for features of modulus 1, for cosines scaled by "
    "sqrt(2/N), whose coefficients are sqrt(N) times longer, and for labels in [0, 1] instead of "
    "a label vector of norm 1"
)


@attrs.frozen(kw_only=True, eq=False)
class WaveModel(ShownModel):
    """f(x) = centre + Re sum c_k phi_k(x), clipped to the label range."""

    domain: Domain
    frequencies: NDArray[np.float64]
    phases: NDArray[np.float64] | None
    coefficients: NDArray[Any]

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predictions in the file's units, shape (n,)."""
        return self.domain.uncentre(self.score(encode_table(self.domain, table)))

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Re phi . c, shape (n,)."""
        return self._of_waves(encoded, lambda waves: np.real(waves @ self.coefficients))

    def lengths(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """||phi||, shape (n,): what noise of 1 on every real coordinate moves a score by."""
        return self._of_waves(encoded, lambda waves: np.linalg.norm(waves, axis=1))

    def _of_waves(
        self, encoded: NDArray[np.float64], measure: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> NDArray[np.float64]:
        # In blocks, so that a long table never needs all its waves at once.
        waves = Waves(self.frequencies, self.phases)
        return in_blocks(lambda rows: measure(waves(rows)), encoded, self.coefficients.size)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the coefficients and what was drawn."""
        fields = {"coefficients": self.coefficients, "frequencies": self.frequencies}
        return fields if self.phases is None else {**fields, "phases": self.phases}


@attrs.frozen(eq=False)
class Waves(Features):
    """exp(i w.x), of modulus 1; or with phases sqrt(2/N) cos(w.x + b), as they come."""

    frequencies: NDArray[np.float64]
    phases: NDArray[np.float64] | None

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        return self._wave(Turns(self.frequencies, self.phases).at(encoded))

    def columns(self, encoded: NDArray[Any]) -> Iterator[NDArray[Any]]:
        return map(self._wave, Turns(self.frequencies, self.phases).blocks(encoded))

    def _wave(self, turns: NDArray[np.float64]) -> NDArray[Any]:
        if self.phases is not None:
            turns = cosines(turns)
            turns *= math.sqrt(2 / self.phases.size)
            return turns
        # cos and sin of the package, whose bits do not depend on the processor.
        waves = np.empty_like(turns, dtype=np.complex128)
        waves.real = cosines(turns.copy(order="K"))
        waves.imag = sines(turns)
        return waves


@attrs.frozen(kw_only=True)
class MinNorm(OneShot):
    r"""Publish :math:`c^\sharp=A^+y`, the shortest interpolant.

    Not total: a decomposition that does not converge ends the run, so that the claim also rests on
    `no_failure`.

    Args:
        waves: `complex`, exp(i w.x) as printed; or `cosines`, as the published code.
        count: N, number of features.
        variance: sigma^2 of the frequencies, per column.
        solver: `pinv`, as printed; `gram`, the same coefficients by way of A A^*, many times as
            fast and without ever holding A, but with half the digits where A is ill conditioned; or
            `kaczmarz`, the paper's own: as many steps as `passes` times the records, from 0, each
            projecting on the equation of one record drawn by its squared length. Which records are
            drawn is secret, and no claim rests on it.
        passes: Of `kaczmarz`; 1 as in the paper, where what is published is then not c.
    """

    bounds: ClassVar[tuple[str, ...]] = ("random_features.liao_lemma_9",)
    total: ClassVar[bool] = False
    publishes: ClassVar[type[Any]] = LinearNoiseModel

    waves: Literal["complex", "cosines"] = attrs.field(
        default="complex", validator=one_of("complex", "cosines")
    )
    count: int = attrs.field(validator=positive_integer)
    variance: float = attrs.field(default=1.0, validator=positive)
    solver: Literal["pinv", "gram", "kaczmarz"] = attrs.field(
        default="pinv", validator=one_of("pinv", "gram", "kaczmarz")
    )
    passes: int = attrs.field(default=1, validator=positive_integer)

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return the waves at all records, and what solves for them."""
        records, count = domain.at_most or 0, self.count
        # Kaczmarz reads each row `passes` times; a decomposition works with the smaller dimension.
        work = self.passes if self.solver == "kaczmarz" else 4 * min(records, count)
        memory = 16 * (2 * domain.width * count + 6 * records * count)
        return memory, 4 * count * (domain.width + work) * max(records, 1)

    def draw(self, public: Public) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Frequencies and, for cosines, phases."""
        stream = public.randomness.stream("features")
        bandwidth = 1 / math.sqrt(self.variance)
        frequencies = gaussian_frequencies(stream, public.domain.width, self.count, bandwidth)
        if self.waves == "complex":
            return frequencies, None
        return frequencies, 2 * math.pi * stream.uniform(self.count)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one: the coefficients, in l2."""
        field: Literal["real", "complex"] = "complex" if self.waves == "complex" else "real"
        shape = (self.count,)
        return (Query(name="coefficients", shape=shape, distance=Distance.L2, field=field),)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """Return the shortest interpolant, or Kaczmarz's way towards it."""
        waves = Waves(*self.draw(public))
        if self.solver == "gram":
            return fit_min_norm(waves, self.count, records.features, records.labels)
        matrix = waves(records.features)
        if self.solver == "kaczmarz":
            steps = self.passes * len(records)
            return projections(matrix, records.labels, steps, secret.stream("rows"))
        return np.linalg.pinv(matrix) @ records.labels

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> WaveModel:
        """Return the real part of the waves' sum."""
        # Drawn again from public randomness: the same numbers as at the fit.
        frequencies, phases = self.draw(public)
        return WaveModel(
            domain=public.domain,
            frequencies=frequencies,
            phases=phases,
            coefficients=answers["coefficients"],
        )


def projections(
    matrix: NDArray[Any], labels: NDArray[np.float64], steps: int, stream: Stream
) -> NDArray[Any]:
    """Randomised Kaczmarz from 0 for rows that may be complex, shape (n, N) to (N,).

    A complex equation with a real right side is two real ones whose rows are orthogonal and
    equally long, so that projecting on both in turn projects on it.

    Source: Strohmer & Vershynin (2009), Algorithm 1.
    """
    # A uniform number times the total picks a row with probability in proportion to |a|^2.
    lengths = np.cumsum(np.sum(np.abs(matrix) ** 2, axis=1))
    if not lengths.size or lengths[-1] == 0.0:
        return np.zeros(matrix.shape[1], dtype=matrix.dtype)
    rows = np.searchsorted(lengths, stream.uniform(steps) * lengths[-1], side="right")
    # The product may round up to the total itself, which lies past the last row.
    order = np.minimum(rows, len(labels) - 1)
    if not np.iscomplexobj(matrix):
        return kaczmarz(matrix, labels, order)
    count = matrix.shape[1]
    # Each complex equation becomes two real ones in the unknowns' real and imaginary parts.
    equations = np.empty((2 * len(labels), 2 * count))
    equations[::2] = np.hstack([matrix.real, -matrix.imag])
    equations[1::2] = np.hstack([matrix.imag, matrix.real])
    right = np.zeros(2 * len(labels))
    right[::2] = labels
    weights = kaczmarz(equations, right, (2 * order[:, None] + [0, 1]).reshape(-1))
    return np.asarray(weights[:count] + 1j * weights[count:])


def lemma_9(count: int, eta: float, *, unit_modulus: bool = True) -> float:
    r"""Lemma 9: :math:`2/\sqrt{N(1-2\eta)}`; :math:`2/\sqrt{1-2\eta}` for features of norm 1.

    Args:
        count: N. eta: In (0, 1/2): the paper's (0, 1) has no meaning from 1/2 on.
        unit_modulus: Features of modulus 1, as printed; False for rows of norm 1.
    """
    if not 0 < eta < 0.5:
        raise ParameterError("lemma_9", "eta in (0, 1/2)", "eta", eta)
    scale = count if unit_modulus else 1
    return up(2 / math.sqrt(scale * (1 - 2 * eta)), roundings=20)


def _eta(instance: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 0.5:
        raise ParameterError(type(instance).__name__, "eta in (0, 1/2)", "eta", value)


@attrs.frozen(kw_only=True)
class LiaoLemma9(SensitivityBound):
    """Lemma 9 for `random_features.min_norm`, in the scale of its features: conditional.

    The triangle inequality needs the assumptions of both datasets of a pair and nothing of their
    relation. With noise on both parts of a complex coefficient (T2) nothing more is needed.

    For `solver: kaczmarz` the number is doubled: the lemma is about c, and says nothing about what
    some steps towards it give. Each step projects on a set that holds c, wherever the order leads;
    so that from 0 no iterate is ever farther than |c| from c, nor longer than 2 |c|.

    Args:
        eta: In (0, 1/2).
    """

    learner: ClassVar[type[Learner]] = MinNorm

    eta: float = attrs.field(default=0.375, validator=_eta)

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the printed number, and what it rests on."""
        assert isinstance(learner, MinNorm)
        # Assumptions are in the features' own scale: waves
        # have modulus 1, cosines rows of norm about 1.
        gram = "A A*/N" if learner.waves == "complex" else "A A^T"
        pair = "of this dataset and of every neighbour it is compared with"
        iterates = learner.solver == "kaczmarz"
        printed = lemma_9(learner.count, self.eta, unit_modulus=learner.waves == "complex")
        source = "Liao, Needell, Schaeffer & Xue (2025), Lemma 9"
        return Sensitivity(
            value=2 * printed if iterates else printed,
            distance=Distance.L2,
            adjacency=adjacency,
            source=f"{source}, doubled for iterates" if iterates else source,
            # Nothing enforces the assumptions on either dataset
            # of a pair: the claim stays conditional.
            validity=Conditional(
                (
                    ("label_norm", f"the centred labels {pair} have l2 norm at most 1"),
                    (
                        "spectrum",
                        f"every eigenvalue of {gram} is at least {1 - 2 * self.eta:.6g}, for the "
                        f"features {pair}",
                    ),
                )
            ),
        )

    def assumption_holds(self, records: Records, learner: Learner, public: Public) -> bool:
        """Of synthetic records: labels of norm at most 1, and the smallest eigenvalue."""
        assert isinstance(learner, MinNorm)
        # For audits on synthetic records: a pair that breaks an assumption is no counterexample.
        matrix = Waves(*learner.draw(public))(records.features)
        if learner.waves == "complex":
            matrix = matrix / math.sqrt(learner.count)
        smallest = np.linalg.eigvalsh(matrix @ matrix.conj().T).min(initial=1.0)
        length = float(np.linalg.norm(records.labels))
        return length <= 1 and bool(smallest >= 1 - 2 * self.eta)


@attrs.frozen(kw_only=True)
class Algorithm1(SensitivityBound):
    """Lemma 9 where Algorithm 1 puts it: real noise on complex coefficients; refuted.

    It goes with the mechanism `random_features.real_noise`, under `dpcore reproduce` only.

    Args:
        eta: In (0, 1/2).
    """

    learner: ClassVar[type[Learner]] = MinNorm

    eta: float = attrs.field(default=0.375, validator=_eta)

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the printed number for complex coefficients, and why it is not a bound."""
        assert isinstance(learner, MinNorm)
        # Real coefficients have no imaginary part to give away: the refutation is of complex ones.
        if learner.waves != "complex":
            return Refused("Algorithm 1 is about complex waves")
        return Sensitivity(
            value=lemma_9(learner.count, self.eta),
            distance=Distance.L2,
            adjacency=adjacency,
            source="Liao, Needell, Schaeffer & Xue (2025), Algorithm 1",
            validity=Refuted(IMAGINARY),
        )


@attrs.frozen(kw_only=True)
class PublishedCode(SensitivityBound):
    """4/sqrt(N) for scaled cosines, as the published code computes it; refuted."""

    learner: ClassVar[type[Learner]] = MinNorm

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the code's number for cosines, and why it is not a bound."""
        assert isinstance(learner, MinNorm)
        if learner.waves != "cosines":
            return Refused("the published code is about cosines")
        return Sensitivity(
            value=up(4 / math.sqrt(learner.count), roundings=20),
            distance=Distance.L2,
            adjacency=adjacency,
            source="github.com/liaochunyang/DPRFM at 7470664",
            validity=Refuted(PUBLISHED_CODE),
        )
