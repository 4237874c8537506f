"""Fresh noise for every question about a private function, up to a planned number (T10)."""

from collections.abc import Callable
from typing import ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Event, Mechanism, Needs, Query, Sensitivity
from dpcore.checks import one_of, positive, positive_integer
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.functions import Expansion, FunctionQuery, Interactive, Oracle
from dpcore.functions.interactive import function_query
from dpcore.mechanism import Arithmetic, Prepared, free
from dpcore.randomness import Stream
from dpcore.rounding import up


class _PerQueryOracle(Oracle):
    """Clips, adds noise of this question's own, and clips again."""

    def __init__(
        self,
        query: FunctionQuery,
        function: Expansion,
        at_most: int,
        release: Prepared,
        noise: Stream,
    ) -> None:
        super().__init__(query, function, at_most)
        self._answer_query, self._release, self._noise = one_answer(query), release, noise

    def _answer(self, fresh: NDArray[np.float64]) -> NDArray[np.float64]:
        bound = self._query.label_bound
        # clipping before the noise limits how far f(x) moves; clipping after it is post-processing
        values = np.clip(self._function(fresh), -bound, bound)
        released = [
            float(self._release(np.array([value]), self._answer_query, self._noise)[0])
            for value in values
        ]
        return np.clip(released, -bound, bound)


@attrs.frozen(kw_only=True)
class PerQuery(Interactive):
    r"""Answer at most `questions` different questions, each with noise of its own.

    A question x gets :math:`\mathrm{clip}(f(x),-M,M)` plus noise for a sensitivity of

    .. math:: \Delta_q=\min(2M,\ \kappa\Delta_K+2e),

    since :math:`|f(x)-f'(x)|\le\kappa\|f-f'\|_K`; e is the error of computing f(x). Answers are
    clipped to [-M, M], repeats are free, the question after the last is refused. The noise is that
    of the core's `gaussian` or `laplace` on a grid: exact arithmetic.

    Args:
        questions: K, paid for in the plan whether they are asked or not.
        law: `gaussian` or `laplace`.
        noise_multiplier: Standard deviation, or scale, over Delta_q; calibrated if left out.

    Source: T10 in docs/theorems-noise.md.
    """

    needs: ClassVar[Needs] = attrs.evolve(Interactive.needs, persons=True)
    source: ClassVar[str] = "T10 (fresh noise for each question)"
    arithmetic: ClassVar[Arithmetic] = "exact"

    questions: int = attrs.field(validator=positive_integer)
    law: Literal["gaussian", "laplace"] = attrs.field(
        default="gaussian", validator=one_of("gaussian", "laplace")
    )
    noise_multiplier: float = free(validator=positive)

    @property
    def query_count(self) -> int:
        """The planned number of questions, each of which costs one event."""
        return self.questions

    @property
    def most_points(self) -> int:
        """The planned number of questions, all at different points."""
        return self.questions

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "PerQuery":
        """Return this mechanism with noise_multiplier = scale, in units of Delta_q."""
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the event of one question; a plan composes it `questions` times."""
        mechanism, answer_sensitivity = self._noise(function_query(query, self), sensitivity)
        return mechanism.event(one_answer(query), answer_sensitivity)

    def open(
        self, value: Expansion, query: FunctionQuery, sensitivity: Sensitivity, noise: Stream
    ) -> Oracle:
        """Return an oracle that refuses what was not paid for."""
        return self.opener(query, sensitivity)(value, noise)

    def opener(
        self, query: FunctionQuery, sensitivity: Sensitivity
    ) -> Callable[[Expansion, Stream], Oracle]:
        """`open` for one query: all oracles share the noise distribution, which holds no
        function.
        """
        mechanism, answer_sensitivity = self._noise(query, sensitivity)
        release = mechanism.prepared(one_answer(query), answer_sensitivity)
        return lambda value, noise: _PerQueryOracle(query, value, self.questions, release, noise)

    def _noise(
        self, query: FunctionQuery, sensitivity: Sensitivity
    ) -> tuple[Mechanism, Sensitivity]:
        """Return the mechanism of one answer, and Delta_q rounded up."""
        # |f(x) - f'(x)| <= kappa ||f - f'||_K, and each value is computed with an error
        cutoff = query.kappa * sensitivity.unit + 2 * query.evaluation_error
        shift = up(min(2 * query.label_bound, cutoff), roundings=3)
        norm = Distance.L2 if self.law == "gaussian" else Distance.L1
        answer_sensitivity = Sensitivity(
            value=shift,
            distance=norm,
            adjacency=sensitivity.adjacency,
            source=sensitivity.source,
            validity=sensitivity.validity,
        )
        if self.law == "gaussian":
            return Gaussian(noise_multiplier=self.noise_multiplier), answer_sensitivity
        return Laplace(noise_scale=self.noise_multiplier * shift), answer_sensitivity


def one_answer(query: Query) -> Query:
    """Return the query for one value of the function."""
    return Query(name=query.name, shape=(1,), distance=Distance.L2)
