r"""What the noise does to functions of numbers with a long tail: both descents, walked again.

Where residuals are long, most gradients of a tail are clipped, so that a descent has not ended when
its steps have. Then the released weights depend on every noisy answer before them: on the moments
and histograms that say where the ranks end, on the sizes of the residuals, which choose the clips,
on the Gram matrices, which say how fast to go, and on the first round, where the second one began.
A linear replay of the second round's gradients (`Descent.noise_covariance`) holds the last only.

So synthetic records with the released tails (`records`), whose labels follow the released model,
are fitted again by the same rules, with the noise of all these answers drawn anew, and the paths
differ by what the noise does. Only the intercept and the functions of those numbers move; what was
chosen, all other weights and products stay as they were released, step by step. Synthetic labels
are moved until a path without noise ends where the release did, as a tail that is not reached is
shrunk.
A function of answers only: the draws are fixed.
"""

import math
from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.choice import kept
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.layout import NONE
from dpcore_tables.metric import DAMPING, Metric
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import (
    BINS,
    WIDENING,
    Ranks,
    cells,
    likely_means,
    likely_variances,
    released_proportions,
)
from dpcore_tables.residuals import UNCLIPPED, USUAL, Residuals, best_clip, measured
from dpcore_tables.sums import EDGES, bins_of
from dpcore_tables.tails.records import Tail, tailed_records

_PATHS, _MOVES = 24, 2
_MOST = 4
"""Numbers with tails that are walked again, those of the largest functions: it bounds the time."""

_WIDER, _CUTOFF = 1.2, 2.0
"""By what deviations in a tail are widened, and from how many standard deviations of a number on.

For what is in no path: which functions were chosen, and that the label need not go on as that of
synthetic records does. Chosen on one lognormal column.
"""

_NEAR = 1.0
"""Nearer to the mean than so many standard deviations only the square of their part is added: there
most records are, so that what is counted without paths is nearly all, and synthetic records lie
evenly in bins that real ones may fill at one value. Chosen on a column of nine tenths zeros."""


class Noise:
    """Standard Gaussian draws of a path, or none at all."""

    def __init__(self, seed: int | None) -> None:
        self._generator = None if seed is None else np.random.Generator(np.random.PCG64(seed))

    def draw(self, *shape: int) -> NDArray[np.float64]:
        """Of this shape; zeros on a path without noise."""
        return np.zeros(shape) if self._generator is None else self._generator.normal(size=shape)


@attrs.frozen(kw_only=True, eq=False)
class TailPaths:
    """Where the paths ended.

    Args:
        columns: The declared columns that moved. ranks: Those of the release.
        members: Which functions of the release moved, the intercept first, shape (d,).
        ends: Of every path its dictionary of these functions, and their weights, shape (d', ).
    """

    columns: tuple[int, ...]
    ranks: Ranks
    members: NDArray[np.bool_]
    ends: tuple[tuple[Dictionary, NDArray[np.float64]], ...]

    def variances(
        self,
        encoded: NDArray[np.float64],
        features: NDArray[np.float64],
        covariance: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return what the paths add to the variance of scores by the noise, shape (n,).

        Args:
            encoded: Rows, shape (n, p). features: phi of them, shape (d, n).
            covariance: Covariance of the weights without them, shape (d, d).
        """
        factors = features[0] / INTERCEPT
        scores = [
            factors
            * (INTERCEPT * weights[0] + (weights[1:] * single.sizes) @ single.values(encoded))
            for single, weights in self.ends
        ]
        own, block = features[self.members], covariance[np.ix_(self.members, self.members)]
        return self._beyond(self.columns, scores, encoded, own, block)

    def of_column(
        self,
        column: int,
        encoded: NDArray[np.float64],
        factor: float,
        frequencies: NDArray[np.float64],
        functions: NDArray[np.float64],
        covariance: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return what the paths add to the variance of one column's own shape, shape (k,).

        Args:
            encoded: Its points, shape (k, p). factor: By which rows are shortened.
            frequencies: Of the points, shape (k,).
            functions: Of every term what one unit of its weight adds there, shape (d - 1, k).
            covariance: Covariance of the terms' weights without the paths, shape (d - 1, d - 1).
        """
        shapes = []
        for single, weights in self.ends:
            is_own = single.terms[:, 0] == column
            values = (weights[1:] * single.sizes * is_own) @ single.values(encoded)
            shapes.append(factor * (values - frequencies @ values))
        places = np.flatnonzero(self.members[1:])[self.ends[0][0].terms[:, 0] == column]
        block = covariance[np.ix_(places, places)]
        return self._beyond((column,), shapes, encoded, functions[places], block)

    def _beyond(
        self,
        columns: tuple[int, ...],
        values: list[NDArray[np.float64]],
        encoded: NDArray[np.float64],
        functions: NDArray[np.float64],
        covariance: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the variance over paths, less what is counted without them, and never below 0; all
        of it where a number of these columns is far from its mean."""
        counted = np.einsum("in,ij,jn->n", functions, covariance, functions)
        single = self.ends[0][0]
        numbers = [single.layout.numeric.index(column) for column in columns]
        z = self.ranks.standard(encoded[:, single.layout.encoded])[numbers]
        distances = WIDENING * np.abs(z).max(axis=0)
        widths = np.where(distances >= _CUTOFF, _WIDER**2, 1.0)
        added = np.maximum(widths * np.var(np.array(values), axis=0, ddof=1) - counted, 0.0)
        return np.asarray(added * np.minimum(distances / _NEAR, 1.0) ** 2)


@attrs.frozen(kw_only=True, eq=False)
class TailReplay:
    """What a release fixed, as far as functions of tails depend on it.

    Args:
        records: n, or what is known of it. offset: The mean label. variances: Of numbers.
        screened, descent: Of both rounds, at their ends.
        residuals: The latest. prior: The variance of predictions with which descents begin.
        unit: Standard deviation of the noise of a vector of length 1 with the whole budget.
        noises: The standard deviation of every query's noise, by its name.
    """

    plan: Plan
    records: float
    offset: float
    variances: NDArray[np.float64]
    screened: Descent
    descent: Descent
    residuals: Residuals
    prior: float
    unit: float
    noises: Mapping[str, float]

    def paths(self) -> TailPaths | None:
        """Return the paths; None if no number that was fitted has a tail."""
        dictionary, weights = self.descent.dictionary, self.descent.weights[:, 0]
        tails = self._tails()
        if not tails:
            return None
        columns = tuple(sorted({dictionary.layout.numeric[number] for number, _ in tails}))
        noise = self.noises["squares"] / self.records
        facts = (self.variances, tails, self.plan.square, noise, self.records)
        encoded, counts = tailed_records(dictionary, *facts)
        members = _members(dictionary, columns)
        walk = Walk(
            replay=self, columns=columns, encoded=encoded, counts=counts, labels=np.zeros(0)
        )
        rows = dictionary.rows(encoded)
        generator = np.random.Generator(np.random.PCG64(2))
        likely = self.offset + rows.T @ weights + self.residuals.drawn(len(encoded), generator)
        shift = np.zeros(int(members.sum()))
        # A path without noise that ends below the release says how far a tail was not reached.
        for _ in range(_MOVES):
            labels = np.clip(likely + rows[members].T @ shift, 0.0, 1.0)
            shift += weights[members] - attrs.evolve(walk, labels=labels).end(Noise(None))[1]
        labels = np.clip(likely + rows[members].T @ shift, 0.0, 1.0)
        walk = attrs.evolve(walk, labels=labels)
        ends = tuple(walk.end(Noise(3 + path)) for path in range(_PATHS))
        return TailPaths(columns=columns, ranks=dictionary.ranks, members=members, ends=ends)

    def _tails(self) -> list[Tail]:
        """Tails that released shares show beyond their noise, of the numbers that matter most."""
        dictionary, numeric = self.descent.dictionary, self.plan.layout.numeric
        if "bins" not in self.noises:
            return []
        tails = dictionary.ranks.tails(self.noises["bins"] / self.records)
        amounts = (self.descent.weights[1:, 0] * dictionary.sizes) ** 2 * dictionary.squares
        is_single = dictionary.terms[:, 2] == NONE
        effects = np.bincount(
            dictionary.terms[is_single, 0], amounts[is_single], self.plan.layout.columns
        )
        numbers = {n for n, _ in tails if numeric[n] not in self.plan.monotone}
        largest = sorted(numbers, key=lambda number: -effects[numeric[number]])[:_MOST]
        return [tail for tail in tails if tail[0] in largest and effects[numeric[tail[0]]] > 0]


def _members(dictionary: Dictionary, columns: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the intercept, and all functions of these columns only; shape (d,)."""
    is_own = np.isin(dictionary.terms[:, 0], columns) & (dictionary.terms[:, 2] == NONE)
    return np.append(True, is_own)


@attrs.frozen(kw_only=True, eq=False)
class Walk:
    """Synthetic records, of which each represents so many, and their labels in [0, 1]."""

    replay: TailReplay
    columns: tuple[int, ...]
    encoded: NDArray[np.float64]
    counts: NDArray[np.float64]
    labels: NDArray[np.float64]

    def end(self, noise: Noise) -> tuple[Dictionary, NDArray[np.float64]]:
        """Return both rounds, by the rules of the release: the functions that moved, and their
        weights.
        """
        release = self.replay
        ranks = self.draw_ranks(noise)
        residuals = self._evaluation(release.offset - self.labels, "residuals", noise)
        first, residuals = self._round("screen", release.screened, ranks, None, residuals, noise)
        last, _ = self._round("fit", release.descent, ranks, first, residuals, noise)
        return last.dictionary, last.weights[:, 0]

    def draw_ranks(self, noise: Noise) -> Ranks:
        """Of another release: moments with their noise, and proportions of the bins that follow."""
        release, ranks = self.replay, self.replay.descent.dictionary.ranks
        layout, records, noises = release.plan.layout, release.records, release.noises
        numbers = [layout.numeric.index(column) for column in self.columns]
        means, variances, proportions = (
            ranks.means.copy(),
            release.variances.copy(),
            ranks.shares.copy(),
        )
        blurred = means[numbers] + noises["means"] / records * noise.draw(len(numbers))
        means[numbers] = likely_means(blurred, release.plan.limit)
        blurred = variances[numbers] + noises["squares"] / records * noise.draw(len(numbers))
        variances[numbers] = likely_variances(blurred, noises["squares"] / records)
        drawn = Ranks.of(means, variances, proportions)
        encoded = self.encoded[:, layout.encoded]
        # The bins have moved: released counts, with what synthetic records then add and lose.
        before, after = (cells(r.standard(encoded), BINS) for r in (ranks, drawn))
        for number in numbers:
            counts = records * ranks.plain_fractions[number] + noises["bins"] * noise.draw(BINS)
            counts += np.bincount(after[number], self.counts, BINS)
            counts -= np.bincount(before[number], self.counts, BINS)
            proportions[number] = released_proportions(counts[None], noises["bins"], records)[0]
        return Ranks.of(means, variances, proportions)

    def _evaluation(self, residuals: NDArray[np.float64], name: str, noise: Noise) -> Residuals:
        """Return a noisy histogram of their sizes."""
        release, deviation = self.replay, self.replay.noises[name]
        counts = deviation * noise.draw(len(EDGES))
        counts += np.bincount(bins_of(np.abs(residuals)), self.counts, len(EDGES))
        return measured(counts, deviation, release.records, USUAL)

    def _round(
        self,
        name: str,
        released: Descent,
        ranks: Ranks,
        before: Descent | None,
        residuals: Residuals,
        noise: Noise,
    ) -> tuple[Descent, Residuals]:
        """Return one descent of the functions that move, all others as they were at every step."""
        release, round_ = self.replay, self.replay.plan.round(name)
        dictionary = attrs.evolve(released.dictionary, ranks=ranks)
        members = _members(dictionary, self.columns)
        rows = dictionary.rows(self.encoded)
        own, others = rows[members], rows[~members].T
        descent = self._start(name, released, dictionary, members, own, noise)
        if before is not None:
            weights = kept(before.dictionary, before.weights, descent.dictionary)
            descent = attrs.evolve(descent, weights=weights)
        proportion = release.plan.shares()[f"{name}.gradient"]
        deviation, clip = release.noises[f"{name}.gradient"], 0.0
        model = (1.0, residuals.sigma, UNCLIPPED)
        for place, step in enumerate(released.steps):
            # Residuals of every synthetic record: what moves here, and what stays as it was
            # released.
            errors = release.offset - self.labels + own.T @ descent.weights[:, 0]
            errors += others @ step.weights[~members, 0]
            is_evaluation = place in round_.evaluations
            if is_evaluation:
                residuals = self._evaluation(errors, f"{name}.residuals", noise)
            # A clip holds from one look at residuals to the next, as in the release.
            if is_evaluation or place == 0:
                unit = release.unit / math.sqrt(proportion)
                clip = best_clip(residuals, unit, release.records, dictionary.width)
                model = (residuals.below(clip), residuals.sigma, residuals.clipped(clip))
            gradient = own @ (self.counts * np.clip(errors, -clip, clip))
            gradient += clip * deviation * noise.draw(len(gradient))
            descent = descent.after(gradient[:, None], clip * deviation, *model)
        return descent, residuals

    def _start(
        self,
        name: str,
        released: Descent,
        dictionary: Dictionary,
        members: NDArray[np.bool_],
        own: NDArray[np.float64],
        noise: Noise,
    ) -> Descent:
        """With a metric of these functions, and the prior that they had in the round."""
        release, single = self.replay, dictionary.only(members[1:])
        deviation, width = release.noises[f"{name}.metric"], single.width
        # A symmetric matrix with the noise of a released one: its upper part has less by a root.
        upper = np.triu(noise.draw(width, width), 1) / math.sqrt(2)
        gram_matrix = (own * self.counts) @ own.T
        gram_matrix += deviation * (upper + upper.T + np.diag(noise.draw(width)))
        ramps = int(dictionary.is_ramp.sum())
        metric = Metric.denoised(
            gram_matrix,
            deviation,
            single,
            release.records,
            released.metric.curvature,
            DAMPING,
            (dictionary.width - ramps, ramps),
        )
        whole = Descent.start(
            dictionary,
            released.metric,
            released.count,
            released.steps[0].weights,
            variance=release.prior,
            early=released.early,
        )
        return attrs.evolve(
            whole,
            dictionary=single,
            metric=metric,
            prior=whole.prior[members[1:]],
            weights=whole.weights[members],
            deviations=single.deviations() if single.is_ramp.any() else None,
        )
