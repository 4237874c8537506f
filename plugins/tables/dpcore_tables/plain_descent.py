r"""Descent by plain steps: what fits small tables, where a Gram matrix costs more than it says.

.. math:: w\leftarrow w-\eta C\,g/n,\qquad\text{kept: the mean of the later half, shrunk}

with g the released sum of :math:`\mathrm{clip}(r/C,\pm1)\phi`. Sizes of functions represent what is
believed of them, and the number of steps for how much is fitted. Of a mean of iterates the noise is
known but for the curvature f n G, with f the proportion of residuals below the clip. Shrinking
takes a public f and :math:`[0.5,v]^2` for G; standard errors a released f, and G of simulated
records that the steps themselves correct.

Of classes g is the sum of clipped residuals of probabilities, and f by how much one of them grows
with its score (`classes.gain`). Their screen's noise counts, too, as far as the fit keeps it.
"""

import math
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.choice import kept
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.plan import Round
from dpcore_tables.residuals import UNCLIPPED, Clipped
from dpcore_tables.steps.curvature import Walked
from dpcore_tables.synthetic_records import simulated_rows

_LEAST = 0.02
_FLATTEST = 1e-6
_BORROWED = 2.0
_DRAWS = 200


def kept_covariance(
    old: Dictionary, covariance: NDArray[np.float64], new: Dictionary
) -> NDArray[np.float64]:
    """Of weights of the old terms, as `choice.kept` takes them over, shape (d, d) of the new."""
    return kept(old, kept(old, covariance, new).T, new)


@attrs.frozen(kw_only=True, eq=False)
class Plain:
    """Where such a descent is.

    Args:
        count: T. rate: eta. records: n, or what is known of it. below: The public f.
        last: Whether nothing is fitted after it: its weights are shrunk.
        weights: w, shape (d, m); after the last step what is kept.
        total: Of the iterates of the later half so far. pulls: Of products with their gradients.
        noise: Standard deviation of the noise of C g; seen: the released f.
        clipped: What chance makes of residuals.
        factors: By what the kept weights were shrunk, shape (d,).
        walked: Of the steps so far. before: The descent of which it began with the weights.
        levels: Proportions of categories of synthetic records, equally frequent ones if empty.
        at_once: Whether its curvature is computed as new releases do, as of `Walked.curvature`.
    """

    dictionary: Dictionary
    count: int
    rate: float
    records: float
    below: float
    last: bool
    weights: NDArray[np.float64]
    taken: int = 0
    total: NDArray[np.float64] | float = 0.0
    pulls: NDArray[np.float64] | float = 0.0
    noise: float = 0.0
    seen: float = 1.0
    clipped: Clipped = UNCLIPPED
    factors: NDArray[np.float64] = attrs.field(factory=lambda: np.ones(1))
    walked: Walked = attrs.field(factory=Walked)
    before: "Plain | None" = None
    levels: Sequence[NDArray[np.float64]] = ()
    at_once: bool = False

    @classmethod
    def planned(
        cls,
        planned: Round,
        dictionary: Dictionary,
        start: NDArray[np.float64],
        records: float,
        below: float,
    ) -> "Plain":
        """Of a round; what the last one keeps is shrunk."""
        return cls(
            dictionary=dictionary,
            count=planned.steps,
            rate=planned.rate,
            records=records,
            below=below,
            last=planned.name == "fit",
            weights=start,
        )

    @property
    def averaged(self) -> int:
        """How many of the last iterates are averaged."""
        return max(1, self.count // 2)

    def after(
        self,
        gradient: NDArray[np.float64],
        noise: float,
        below: float,
        sigma: float,
        clipped: Clipped,
    ) -> "Plain":
        """Return one step further; `sigma` of residuals is not used.

        Args:
            gradient: C g, shape (d, m). noise: Its standard deviation. below: The released f.
            clipped: What chance makes of residuals.
        """
        # A step of public rate on a released gradient: post-processing throughout.
        weights = self.weights - self.rate / self.records * gradient
        walked = self.walked.after(self.weights[:, 0], gradient[:, 0])
        total, pulls = self.total, self.pulls
        # Only the later half is averaged: early iterates still carry the start.
        if self.taken >= self.count - self.averaged:
            total, pulls = total + weights, pulls + self.weights * gradient
        stepped = attrs.evolve(
            self,
            weights=weights,
            total=total,
            pulls=pulls,
            taken=self.taken + 1,
            walked=walked,
            clipped=clipped,
        )
        if stepped.taken < self.count:
            return stepped
        return stepped.ended(np.asarray(total / self.averaged), noise, below)

    def ended(self, kept: NDArray[np.float64], noise: float, below: float) -> "Plain":
        """After the last step.

        Args:
            kept: The mean of the later iterates, shape (d, m). noise, below: As of `after`.
        """
        ended = attrs.evolve(self, noise=noise, seen=below)
        factors = ended._factors(kept, ended._usual_variances())
        return attrs.evolve(ended, weights=kept * factors[:, None], factors=factors)

    def _rows(self) -> NDArray[np.float64]:
        """phi of synthetic records, shape (d, 1000)."""
        return simulated_rows(self.dictionary, self.levels)

    def _usual_variances(self) -> NDArray[np.float64]:
        """Variances of kept weights as shrinking takes them, shape (d,)."""
        return self._variances(self.noise, self.below * self.dictionary.scales**2)

    def _factors(
        self, weights: NDArray[np.float64], variances: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """By what weights of shape (d, m) are shrunk, shape (d,)."""
        factors = np.ones(len(weights))
        # The screen is not shrunk: only weights are that nothing is fitted after.
        if self.last:
            factors[1:] = self._shrinkage(weights[1:], variances[1:])
        return factors

    def _variances(self, noise: float, curvatures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the mean of the later iterates, in directions of these curvatures per record: the
        noise of step j enters with the sum over later iterates k of (1 - h)^(k - j)."""
        # A geometric sum per direction: how much of each step's noise the mean still has.
        shrinking = 1 - self.rate * np.maximum(curvatures, _FLATTEST)
        steps = np.arange(self.count)[:, None]
        first = np.maximum(steps, self.count - self.averaged) - steps
        amounts = shrinking**first - shrinking ** (self.count - steps)
        amounts /= (1 - shrinking) * self.averaged
        return np.asarray((self.rate * noise / self.records) ** 2 * (amounts**2).sum(axis=0))

    def _shrinkage(
        self, weights: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Signal over signal and noise, of every column and pair, which borrow from all others."""
        # Squares less their noise may be negative: a group borrows from others, and has a floor.
        excesses = np.mean(weights**2, axis=1) - noise
        usual = float(np.mean(noise))
        everywhere = max(float(np.mean(excesses)), _LEAST * usual)
        groups = self.dictionary.groups()
        signal = np.bincount(groups, excesses) + _BORROWED * everywhere
        signal /= np.bincount(groups) + _BORROWED
        group_signal = np.maximum(signal, _LEAST * usual)[groups]
        return np.asarray(group_signal / (group_signal + noise))

    def slope(self) -> tuple[float, float]:
        r"""By what the kept weights would have to be multiplied for the gradients of other records
        to balance along them, and the standard deviation of that; after the last step of the fit.

        With L the curvature and F the factors of shrinking, of kept weights :math:`v=Fw`

        .. math:: t=\frac{v^TLw-\overline{(Fw_k)^Tg_k}-\mathrm{tr}\,FAC}{v^TLv},\qquad
                  s=\frac{s_g|v|}{\sqrt{T/2}\,v^TLv}

        over the later half of the steps, T/2 in number. Gradients are of these records, whose
        chance has covariance C (`clipped`) and moves w by AC: the trace is what of it is in both.
        The intercept is free. A function of answers only; (1, infinity) where nothing is kept.
        """
        rows = self._rows()
        values, vectors = self._curvatures(rows, self.clipped.share)
        curvature = self.records * (vectors * values) @ vectors.T
        # The intercept is free: what is along it is left out, and what it explains of the rest.
        inner = curvature[1:, 1:] - np.outer(curvature[1:, 0], curvature[0, 1:]) / curvature[0, 0]
        factors = self.factors[1:, None]
        kept, mean, pulls = self.weights[1:], self.weights[1:] / factors, np.asarray(self.pulls)[1:]
        if kept.shape[1] > 1:
            kept, mean = (part - part.mean(axis=1, keepdims=True) for part in (kept, mean))
        square = float(np.sum(kept * (inner @ kept)))
        if not square > _FLATTEST:
            return 1.0, math.inf
        # Chance moves gradients by this, in one column for each source, and kept weights with them.
        chance = self.clipped.size * math.sqrt(self.records / rows.shape[1]) * rows
        moved = (vectors * self._reached(values)) @ (vectors.T @ chance) / self.records
        optimism = max(kept.shape[1] - 1, 1) * float(np.sum(factors * moved[1:] * chance[1:]))
        # A gradient's noise is independent of the weights it was taken at, not of their mean.
        cutoff = float(np.sum(kept * (inner @ mean)) - np.sum(factors * pulls) / self.averaged)
        deviation = self.noise * math.sqrt(float(np.sum(self.weights[1:] ** 2)) / self.averaged)
        return (cutoff - optimism) / square, deviation / square

    def noise_covariance(self, *, screened: bool = False) -> NDArray[np.float64]:
        """Return how much the gradients' noise of this round moved the kept weights, shape (d, d);
        after the last step.

        Noise moves the factors of shrinking, too: the kept weights are drawn with their noise again
        and again, and shrunk.

        Args:
            screened: Whether the noise of the screen counts, too, as far as the start still has it.
        """
        values, vectors = self._curvatures(self._rows(), self.seen)
        root = vectors * np.sqrt(self._variances(self.noise, values))
        if screened and self.before is not None:
            before = attrs.evolve(self.before, seen=self.seen)
            covariance = kept_covariance(
                before.dictionary, before.noise_covariance(), self.dictionary
            )
            decay = (vectors * self._decay(values)) @ vectors.T
            squares, basis = np.linalg.eigh(root @ root.T + decay @ covariance @ decay)
            root = basis * np.sqrt(np.maximum(squares, 0.0))
        if not self.last:
            return np.asarray(root @ root.T)
        generator = np.random.Generator(np.random.PCG64(0))
        # The factors of shrinking depend on the noise, too: draw it, and shrink again.
        outputs = self.weights.shape[1]
        noise = root @ generator.standard_normal((len(root), _DRAWS * outputs))
        noisy_weights = self.weights[:, None] + noise.reshape(len(root), _DRAWS, outputs)
        variances = self._usual_variances()
        for weights in noisy_weights.swapaxes(0, 1):
            weights *= self._factors(weights, variances)[:, None]
        fits = noisy_weights - noisy_weights.mean(axis=1, keepdims=True)
        fits = fits.reshape(len(root), -1)
        return np.asarray(fits @ fits.T / ((_DRAWS - 1) * outputs))

    def _decay(self, curvatures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the mean of the later iterates still has of the start, in these
        directions.
        """
        shrinking = 1 - self.rate * np.maximum(curvatures, _FLATTEST)
        numbers = np.arange(self.count - self.averaged + 1, self.count + 1)[:, None]
        return np.asarray((shrinking**numbers).mean(axis=0))

    def _reached(self, curvatures: NDArray[np.float64]) -> NDArray[np.float64]:
        """By what a constant force moves the mean of the later iterates in these directions: it
        moves iterate k by (1 - shrinking^k)/curvature."""
        shrinking = 1 - self.rate * np.maximum(curvatures, _FLATTEST)
        return np.asarray((1 - self._decay(curvatures)) * self.rate / (1 - shrinking))

    def _curvatures(
        self, rows: NDArray[np.float64], below: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of every direction per record, and the directions; of synthetic rows, shape (d, k)."""
        usual = below * self.records / rows.shape[1] * (rows @ rows.T)
        # In the eigenbasis of the estimated curvature the noise of each direction is a known sum.
        values, vectors = np.linalg.eigh(
            self.walked.curvature(usual, self.noise, at_once=self.at_once)
        )
        return values / self.records, vectors

    def error_covariance(self) -> NDArray[np.float64]:
        """Return how much noise and chance moved the kept weights with these factors, shape (d,
        d).
        """
        root = self.factors[:, None] * self._error_root()
        return np.asarray(root @ root.T)

    def _error_root(self) -> NDArray[np.float64]:
        """Return what noise and chance added to the mean of the later iterates: one column a
        source.

        Chance is that of independent residuals of synthetic records, the last sources: the same
        ones in both rounds, as the records are.
        """
        rows = self._rows()
        curvatures, vectors = self._curvatures(rows, self.clipped.share)
        noise = vectors * np.sqrt(self._variances(self.noise, curvatures))
        decay = self._decay(curvatures)
        force = (vectors * self._reached(curvatures)) @ vectors.T
        size = self.clipped.size / math.sqrt(self.records * rows.shape[1])
        chance = size * (force @ rows)
        if self.before is None:
            return np.hstack([noise, chance])
        # The start has the errors of the screen, as far as it has the same terms.
        before = attrs.evolve(self.before, clipped=self.clipped)
        start = kept(before.dictionary, before._error_root(), self.dictionary)
        start = (vectors * decay) @ (vectors.T @ start)
        count = rows.shape[1]
        return np.hstack([noise, start[:, :-count], start[:, -count:] + chance])
