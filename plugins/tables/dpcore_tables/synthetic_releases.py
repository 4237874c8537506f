r"""What a small table's privacy noise does to its predictions: synthetic releases, by the same
rules.

Synthetic records have the released moments. Their labels are the released model's predictions with
residuals of the released sizes. Fits of them differ by their noise only: of moments, of the mean
label and its dispersion, and of the gradients of both rounds. So they choose other clips, functions
and sizes, as another release would. A function of answers only, as the draws are fixed.
"""

from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables import small
from dpcore_tables.choice import kept
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.plain_descent import Plain
from dpcore_tables.plan import Plan, Round
from dpcore_tables.ranks import Ranks, likely_means, likely_variances
from dpcore_tables.residuals import Residuals
from dpcore_tables.synthetic_records import simulated_records

_PATHS, _RECORDS = 12, 400


@attrs.frozen(kw_only=True, eq=False)
class Replay:
    """What a release of a small table fixed.

    Args:
        records: n, or what is known of it. label: The mean. spread: Of labels.
        variances: Of numbers. descent: At its end.
        noises: The standard deviation of every query's noise, by its name.
    """

    plan: Plan
    records: float
    label: float
    deviation: float
    variances: NDArray[np.float64]
    residuals: Residuals
    descent: Plain
    noises: Mapping[str, float]

    def noise_covariance(self) -> NDArray[np.float64]:
        """Of the model's weights, shape (d, d): that of the second round's gradients only, times
        what makes the mean variance of predictions that of the fits."""
        generator = np.random.Generator(np.random.PCG64(0))
        encoded = simulated_records(self.descent.dictionary, _RECORDS)
        rows = self.descent.dictionary.rows(encoded)
        predictions = self.label + rows.T @ self.descent.weights[:, 0]
        labels = np.clip(predictions + self.residuals.drawn(_RECORDS, generator), 0.0, 1.0)
        fits = self._fits(encoded, labels, generator)
        covariance = self.descent.noise_covariance()
        gradient_variance = float(np.mean(np.einsum("in,ij,jn->n", rows, covariance, rows)))
        # Across paths, at each record: what all noises together move a prediction by.
        total_variance = float(np.mean(np.var(fits, axis=0, ddof=1)))
        return (
            covariance * (total_variance / gradient_variance)
            if gradient_variance > 0
            else covariance
        )

    def _fits(
        self,
        encoded: NDArray[np.float64],
        labels: NDArray[np.float64],
        generator: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Predictions of every synthetic release, shape (paths, records)."""
        centres, clips, firsts = [], [], []
        # Draw what precedes the screen: moments, the mean label, and the spread that sets the clip.
        for _ in range(_PATHS):
            firsts.append(self._draw_dictionary(generator))
            centre = self.label + self._noise("label", generator) / self.records
            centre = min(max(centre, 0.0), 1.0)
            centres.append(centre)
            clips.append(
                small.clip_of(self.plan.signal, self._label_deviation(labels - centre, generator))
            )
        targets = labels - np.array(centres)[:, None]
        screen, fit = self.plan.rounds()
        starts = [np.zeros((first.width, 1)) for first in firsts]
        # Both rounds with their own clips and dictionaries: selection noise is in the result, too.
        screened = self._round(screen, firsts, starts, encoded, targets, clips, generator)
        seconds = [
            small.second_dictionary(first, weights, fit.width)
            for first, weights in zip(firsts, screened, strict=True)
        ]
        starts = [kept(*pair) for pair in zip(firsts, screened, seconds, strict=True)]
        ends = self._round(fit, seconds, starts, encoded, targets, clips, generator)
        predictions = [
            second.rows(encoded).T @ end[:, 0] + centre
            for second, end, centre in zip(seconds, ends, centres, strict=True)
        ]
        return np.array(predictions)

    def _noise(self, name: str, generator: np.random.Generator) -> float:
        return float(self.noises[name] * generator.standard_normal())

    def _draw_dictionary(self, generator: np.random.Generator) -> Dictionary:
        """With moments of another release."""
        layout, ranks = self.plan.layout, self.descent.dictionary.ranks
        means, variances = ranks.means, self.variances
        if layout.numeric:
            # Moments are blurred as their releases were, and kept inside by the same rules.
            noises = [generator.standard_normal(len(means)) / self.records for _ in range(2)]
            means = likely_means(means + self.noises["means"] * noises[0])
            variances = likely_variances(
                variances + self.noises["squares"] * noises[1],
                self.noises["squares"] / self.records,
            )
        return small.first_dictionary(
            layout, Ranks.of(means, variances, ranks.shares), self.plan.signal
        )

    def _label_deviation(
        self, residuals: NDArray[np.float64], generator: np.random.Generator
    ) -> float:
        sizes = np.minimum(np.abs(residuals), small.LIMIT) - small.LIMIT / 2
        total = self.records * float(np.mean(sizes)) + self._noise("spread", generator)
        return small.deviation_of(total, self.noises["spread"], self.records)

    def _round(
        self,
        round_: Round,
        dictionaries: list[Dictionary],
        starts: list[NDArray[np.float64]],
        encoded: NDArray[np.float64],
        targets: NDArray[np.float64],
        clips: list[float],
        generator: np.random.Generator,
    ) -> list[NDArray[np.float64]]:
        """Return what each descent keeps, shape (d, 1)."""
        # All paths at once: stacked matrices, one step after the other.
        rows = np.array([dictionary.rows(encoded) for dictionary in dictionaries])
        weights = np.array([start[:, 0] for start in starts])
        clip = np.array(clips)[:, None]
        noise = clip * self.noises[f"{round_.name}.gradient"]
        scale = self.records / _RECORDS
        below = small.below_clip(self.plan.signal)
        walks = [
            Plain.planned(round_, dictionary, start, self.records, below)
            for dictionary, start in zip(dictionaries, starts, strict=True)
        ]
        first, total = round_.steps - walks[0].averaged, np.zeros(weights.shape)
        for step in range(round_.steps):
            residuals = np.matmul(weights[:, None, :], rows)[:, 0, :] - targets
            # Clip and noise as the real steps have them; 400 records represent n.
            clipped = np.clip(residuals, -clip, clip)
            gradients = scale * np.matmul(rows, clipped[:, :, None])[:, :, 0]
            gradients += noise * generator.standard_normal(weights.shape)
            weights = weights - round_.rate / self.records * gradients
            if step >= first:
                total += weights
        means = total / walks[0].averaged
        return [
            walk.ended(mean[:, None], float(deviation[0]), 1.0).weights
            for walk, mean, deviation in zip(walks, means, noise, strict=True)
        ]
