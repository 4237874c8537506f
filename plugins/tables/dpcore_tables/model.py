"""ShapeModel: what a release of shape functions publishes, and what people look at."""

from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Range
from dpcore.domain import Classes
from dpcore.domain.domain import Table
from dpcore.encoding.cells import columns_by_name
from dpcore.encoding.tables import encode_table
from dpcore.errors import UnfitTargetError
from dpcore.models.description import ShownModel
from dpcore.models.linear import in_blocks
from dpcore.models.shapes import Shape
from dpcore.views.markup import Listing, Summary
from dpcore_tables import portable
from dpcore_tables.classes import probabilities, softmax, unclipped
from dpcore_tables.conversation import State
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.pairs.cells import cells_of
from dpcore_tables.plan import Kind
from dpcore_tables.shapes.changes import Curve, Edit, changed_shape, edits_at
from dpcore_tables.shapes.choice_noise import with_choice
from dpcore_tables.shapes.fit_noise import noise_covariance
from dpcore_tables.shapes.inference import shapes_of
from dpcore_tables.shapes.null_distribution import error_covariance
from dpcore_tables.shapes.scaled_scores import ScaledScores
from dpcore_tables.synthetic_records import usual_shortening
from dpcore_tables.tails.replay import TailPaths, TailReplay


@attrs.frozen(kw_only=True, eq=False, slots=False)
class ShapeModel(ShownModel):
    """Sums of shape functions, for labels scaled to [0, 1] or scores of classes.

    Args:
        weights: w, shape (d, m). offset: Of the scores, shape (m,).
        state: What the answers fixed, from which shapes and their tests follow.
        curves: Of monotone columns, in place of their functions.
        edits: What people added to shapes after publication, in order.
        scaled: By what scores of classes were multiplied; None if they are not corrected.
        weight: The column of weights, which no prediction needs.
    """

    domain: Domain
    kind: Kind
    dictionary: Dictionary
    weights: NDArray[np.float64]
    offset: NDArray[np.float64]
    state: State
    curves: tuple[Curve, ...] = ()
    edits: tuple[Edit, ...] = ()
    scaled: ScaledScores | None = None
    weight: str | None = None

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """Covariance of one output's weights by the noise, shape (d, d)."""
        if self.scaled is not None:
            return self.scaled.deviation
        # A fit without noise is asked for predictions only, and needs none.
        deviation, state = noise_covariance(self.state), self.state
        if state.plan.loss.logarithmic:
            deviation[0, 0] += (state.balance[1] / INTERCEPT) ** 2
        if not state.plan.last_directions:
            return deviation
        return state.calibration.moved(deviation, state.descent.weights)

    @cached_property
    def noise(self) -> NDArray[np.float64]:
        """`deviation`, and by how much another choice of functions would have moved the weights.

        It takes about as long as a fit of few records, and no run needs it.
        """
        multiplied = self.state.calibration if self.scaled is None else self.scaled
        return with_choice(self.state, self.deviation, multiplied.factor)

    @cached_property
    def tails(self) -> TailPaths | None:
        """Where other noise would have led functions of numbers with a long tail; None without.

        It takes about as long as some descents of these functions, and no run needs it.
        """
        state, descent = self.state, self.state.descent
        if self.kind != "number" or state.screened is None or not isinstance(descent, Descent):
            return None
        if state.plan.loss.name != "squared":
            return None
        paths = TailReplay(
            plan=state.plan,
            records=state.records,
            offset=float(state.offset[0]),
            variances=state.variances,
            screened=state.screened,
            descent=descent,
            residuals=state.residuals,
            prior=state.prior_variance,
            unit=state.unit,
            noises=state.noises,
        ).paths()
        if paths is None or not state.plan.last_directions:
            return paths
        # The last look mends all of them alike.
        ends = [(single, state.calibration.weights(weights)) for single, weights in paths.ends]
        return attrs.evolve(paths, ends=tuple(ends))

    @property
    def _unit(self) -> float:
        """Of the shapes, in units of the score."""
        if self.state.plan.loss.logarithmic:
            return float(self._link[1])
        return 2 * self.domain.label_bound if self.kind == "number" else 1.0

    @property
    def _link(self) -> NDArray[np.float64]:
        """Of a logarithm, what scores are relative to, and their scale."""
        return self.state.link.get("link", np.ones(2))

    def _is_free(self) -> NDArray[np.bool_]:
        """Which functions are of no monotone column, the intercept first; shape (d,)."""
        monotone = [curve.column for curve in self.curves]
        return np.append(True, ~np.isin(self.dictionary.terms[:, 0], monotone))

    def _free(self) -> tuple[Dictionary, NDArray[np.float64]]:
        """Return the dictionary and the weights of all columns but the monotone ones."""
        # The very same arrays: products of copies need not have the same bits.
        if not self.curves:
            return self.dictionary, self.weights
        is_free = self._is_free()
        return self.dictionary.only(is_free[1:]), self.weights[is_free]

    def _unprojected(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what weights are multiplied with, were monotone columns not projected; shape (d,
        n).
        """
        if not self.curves:
            return self.dictionary.rows(encoded)
        # Rows of the other columns are shortened by themselves, curves by the usual factor.
        is_free, factor = self._is_free(), usual_shortening(self.dictionary)
        monotone = self.dictionary.only(~is_free[1:])
        rows = np.empty((len(is_free), len(encoded)))
        rows[is_free] = self._free()[0].rows(encoded)
        rows[~is_free] = factor * monotone.sizes[:, None] * monotone.values(encoded)
        return rows

    def _cells(self, encoded: NDArray[np.float64]) -> NDArray[np.intp]:
        """Of every table, where each encoded row is; shape (J, n)."""
        layout, pairs = self.dictionary.layout, self.state.tables.pairs
        return cells_of(layout, self.dictionary.ranks, pairs, encoded)

    def outputs(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of encoded rows, shape (n, m)."""
        dictionary, weights = self._free()

        # In blocks: a dictionary has hundreds of functions, and memory is bounded by one block.
        def block_scores(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            scores = np.asarray(dictionary.rows(rows).T @ weights + self.offset)
            for curve in self.curves:
                scores[:, 0] += curve.values[curve.cells(dictionary, rows)]
            for place in self._cells(rows):
                scores[:, 0] += self.state.tables.values[place]
            if self.edits:
                scores[:, 0] += edits_at(self.edits, self.domain, rows) / self._unit
            return scores

        return in_blocks(block_scores, encoded, len(self.weights))

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centred predictions, shape (n,); of two classes 2p - 1, of several the class's code."""
        if self.kind == "several":
            # The correction for clipping keeps the order of classes.
            return np.asarray(np.argmax(self.outputs(encoded), axis=1), dtype=np.float64)
        scores = self.outputs(encoded)[:, 0]
        # Clipped residuals bias the logistic score in the fit: `unclipped` inverts that.
        if self.kind == "two":
            return 2 * unclipped(_sigmoid(scores)) - 1
        predictions = self.state.plan.loss.predictions(scores, self._link)
        return (2 * predictions - 1) * self.domain.label_bound

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predictions in the file's units, or classes; shape (n,)."""
        return self.domain.uncentre(self.score(self.encode(table)))

    def encode(self, table: Table) -> NDArray[np.float64]:
        """Rows as the domain encodes them, shape (n, p); any weights if the table has none."""
        columns, weight = columns_by_name(table), self.weight
        if weight is not None and weight not in columns:
            column, rows = self.domain.columns[weight], len(next(iter(columns.values())))
            assert isinstance(column, Range), "weights are numbers"
            columns = {**columns, weight: np.full(rows, column.high)}
        return encode_table(self.domain, columns)

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Of every class, in the order in which they are declared; shape (n, classes).

        Raises:
            AttributeError: the target is a number.
        """
        if not isinstance(self.domain.labels, Classes):
            raise AttributeError("a target that is a number has no probabilities of classes")
        scores = self.outputs(self.encode(table))
        # Before 0.2.0 nothing was shrunk, and several classes were not corrected for clipping.
        if self.kind == "several" and self.scaled is None:
            return softmax(scores)
        return probabilities(scores)

    def standard_errors(self, table: Table) -> NDArray[np.float64]:
        """Return how much the privacy noise moved each score, in label units for numbers, or of the
        logarithm of the prediction where the loss has one; shape (n,).

        Of numbers with a long tail with what `tails` adds. Of monotone columns, as if they were
        not: the noise moves their curves less on average.
        """

        def block_variances(encoded: NDArray[np.float64]) -> NDArray[np.float64]:
            rows = self._unprojected(encoded)
            variances = np.asarray(np.einsum("in,ij,jn->n", rows, self.noise, rows))
            # What the noise of all other answers does to tails is in no dispersion of weights.
            if self.tails is not None:
                variances += self.tails.variances(encoded, rows, self.noise)
            for place in self._cells(encoded):
                variances += self.state.tables.variances[place]
            return variances

        # The variance of a score is phi' S phi, S the covariance of one output's weights.
        squares = in_blocks(block_variances, self.encode(table), len(self.weights))
        deviations = np.sqrt(np.maximum(squares, 0.0))
        return np.asarray(deviations * self._unit)

    def shapes(self) -> tuple[Shape, ...]:
        """Return what the model says of every column and pair, the most important first.

        Pairs are purified: what they say of one column by itself is in that column's shape. Those
        of monotone columns are, and what was edited has what was added to it.
        """
        # Tests compare what was fitted with its errors, and both are shrunk alike.
        multiplied = self.state.calibration if self.scaled is None else self.scaled
        errors = multiplied.factor**2 * error_covariance(self.state, self.deviation)
        shapes = shapes_of(
            self.domain,
            self.dictionary,
            self.state.levels,
            self.weights,
            self.noise,
            errors,
            self._unit,
            self.state.plan.pairs,
            self.tails,
            self.state.tables,
        )
        if not (self.curves or self.edits):
            return shapes
        changed = [
            changed_shape(
                shape, self.domain, self.dictionary, self.state.levels, self._unit,
                self.curves, self.edits,
            )
            for shape in shapes
        ]  # fmt: skip
        return tuple(sorted(changed, key=lambda shape: -shape.importance))

    def edit(self, column: str, where: Sequence[Any], add: float, reason: str) -> "ShapeModel":
        """This model with an amount added to the shape of one column; it spends nothing.

        The published model stays as it is: an edit is of the copy, which lists it in `edits`, in
        its summary and in what is exported of it. Monotone columns may be edited, too.

        Args:
            column: Its name. where: Both ends of a stretch of numbers, or a list of categories.
            add: In units of the shape: of the label, or of the score of two classes.
            reason: Why, in words that are kept.

        Raises:
            UndeclaredError: there is no such column, category, or stretch of numbers.
            UnfitTargetError: there are several classes.
        """
        if self.kind == "several":
            raise UnfitTargetError("shapes of several classes cannot be edited: they have no unit")
        edit = Edit(column=column, where=tuple(where), add=float(add), reason=reason)
        edit.parts(self.domain)
        return attrs.evolve(self, edits=(*self.edits, edit))

    def shown_summary(self) -> Summary:
        """Return what every model shows, and all edits."""
        summary = super().shown_summary()
        if not self.edits:
            return summary
        rows = [(edit.column, str(edit.where), edit.add, edit.reason) for edit in self.edits]
        listing = Listing.of(("edited after publication", "where", "added", "reason"), rows)
        return attrs.evolve(summary, tables=(listing, *summary.tables))

    def exported(self) -> tuple[ModuleType, dict[str, Any]]:
        """Return a module of numpy only whose `score` gives the same scores, and the values it
        takes.
        """
        dictionary, weights = self._free()
        layout, fixed, loss = dictionary.layout, dictionary.arrays(), self.state.plan.loss
        names = ("terms", "sizes", "means", "widths", "waves", "shares")
        # Plain values only: an exported file holds them as text.
        return portable, {
            "kind": self.kind,
            "bound": self.domain.label_bound if self.kind == "number" else 1.0,
            "levels": layout.levels,
            "starts": layout.starts,
            "weights": weights,
            "offset": self.offset,
            "curves": [{"column": c.column, "values": c.values} for c in self.curves],
            "edits": [
                {
                    **attrs.asdict(edit),
                    "cells": edit.parts(self.domain),
                    "score": edit.add / self._unit,
                }
                for edit in self.edits
            ],
            "tables": [
                {"pair": table.pair, "shape": table.shape, "values": table.values}
                for table in self.state.tables.tables
            ],
            **{name: fixed[name] for name in names},
            **({"link": [*self._link, loss.shift]} if loss.logarithmic else {}),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights, what fixes the features, and the dispersion of the weights, without `tails`."""
        weights = {"coefficients": self.weights, "offset": self.offset, "spread": self.deviation}
        if self.state.plan.loss.logarithmic:
            weights["link"] = self._link
        # The key is only where columns are monotone: what was published before has none.
        curves = {"curves": np.array([c.values for c in self.curves])} if self.curves else {}
        # So do tables: their pairs, and their values by cell, one table after the other.
        tables = self.state.tables
        of_pairs = {"pairs": tables.pairs, "pair_values": tables.values} if len(tables) else {}
        return {**weights, **curves, **of_pairs, **self.dictionary.arrays()}


def _sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 + 0.5 * np.tanh(scores / 2))
