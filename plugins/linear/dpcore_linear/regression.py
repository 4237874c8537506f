r"""Regression: a published line with a table of its coefficients, as people know them.

With :math:`\tilde\theta` released, H the matrix that was solved, N the covariance of the noise in
its equations and M an estimate of the covariance that the draw of the records puts there,

.. math:: \mathrm{Cov}=H^{-1}(M+N)H^{-1}

is that of :math:`\tilde\theta` around the coefficients of the population, and
:math:`H^{-1}NH^{-1}` that around the coefficients of the same records without noise. All of it is
a function of answers and public facts.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Learner, Public
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import ContractError, need
from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore.models import Described, Description, Figures, LinearModel
from dpcore.models.error_bars import NoIntervals, NoiseIntervals
from dpcore.models.figures import NOISE, POPULATION, PopulationIntervals
from dpcore.shown import align, in_digits, interval_cells
from dpcore.views.markup import Listing, Summary
from dpcore_linear.design import Design, bases, file_units
from dpcore_linear.linearised_noise import LinearisedNoise

TOO_FEW = "says nothing: too few records for this budget"
"""What is in place of every standard error where the public rule refuses."""

_LIKELY = 35.0  # n mu / p^1.5 from which most tables say something

NO_DISTRIBUTION = (
    "says nothing: standard errors are stated for normal noise alone (mechanism gaussian)"
)
"""What is there where the noise has another law."""


def silence(noise_distribution: NoiseDistribution | None, is_hidden: bool) -> str:
    """Return why errors are not reported, from public facts and answers; empty if they are."""
    if not isinstance(noise_distribution, NormalDistribution):
        return NO_DISTRIBUTION
    return TOO_FEW if is_hidden else ""


class CoefficientTable(Learner):
    """A learner of a `Regression`, of whose table public facts say when it says nothing."""

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return n from which on most tables report errors; 0 for a pure budget."""
        # Measured for columns that fill their ranges; the rule itself is one of answers.
        width = Design().width(public.domain)
        return float(f"{_LIKELY * width**1.5 / public.mu:.2g}") if public.mu else 0.0

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Forecast, roughly, the number of records below which the table reports nothing."""
        width, count = (
            Design().width(public.domain),
            self.least_records(public, noise_distributions),
        )
        line = f"below about {count:.0f} records the table of {width} coefficients says nothing"
        return (line,) if count else ()


@attrs.frozen(kw_only=True, eq=False)
class Covariances:
    """Of released coefficients, in the units in which they are solved.

    Args:
        total: Around the population's coefficients. noise: Around those of the same records.
    """

    total: NDArray[np.float64]
    noise: NDArray[np.float64]

    @classmethod
    def sandwich(
        cls, inverse: NDArray[np.float64], noise: NDArray[np.float64], meat: NDArray[np.float64]
    ) -> "Covariances":
        """Compute inverse (noise + meat) inverse, with and without the meat."""
        around_records = inverse @ noise @ inverse
        return cls(total=around_records + inverse @ meat @ inverse, noise=around_records)

    def turned(self, turn: NDArray[np.float64]) -> "Covariances":
        """Return those of `turn` times the coefficients."""
        return Covariances(total=turn @ self.total @ turn.T, noise=turn @ self.noise @ turn.T)


def matrix_noise(std: float, vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance of E v, for symmetric noise E.

    Its std is `std` on the diagonal and std/sqrt(2) off it.
    """
    square = float(vector @ vector)
    product: NDArray[np.float64] = square * np.eye(vector.size) + np.outer(vector, vector)
    return std * std / 2 * product


def positive_part(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix without its negative eigenvalues, which only noise can make."""
    values, vectors = np.linalg.eigh(matrix)
    product: NDArray[np.float64] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return product


@attrs.frozen(kw_only=True, eq=False)
class Regression(LinearModel, Described):
    """A line in the declared columns, with standard errors of its coefficients.

    A coefficient is in the file's units: what one unit of a range adds, being of a category rather
    than of the first one, or a missing entry rather than one in the middle of its range.

    Args:
        covariances: Of the coefficients, in the units of `coefficients`; None where the release
            says nothing of them.
        level: With what probability an interval holds.
        reason: Why it says nothing.
        method: What was fitted, and how errors are found, in a few words.
        clipped: What was clipped, in a clause.
        interval: What its intervals cover: `noise`, `population` or `both`.
    """

    covariances: Covariances | None
    level: float
    reason: str = ""
    method: str
    clipped: str
    interval: str = "both"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coefficients, in order; the intercept is the first."""
        return file_units(self.domain).names

    @property
    def params(self) -> NDArray[np.float64]:
        """The coefficients in the file's units, shape (p,)."""
        units = file_units(self.domain)
        return np.asarray(units.turn @ self.coefficients + units.shift)

    @property
    def bse(self) -> NDArray[np.float64]:
        """Standard errors around the population's coefficients, shape (p,).

        They hold the error of sampling and the noise; the noise only with `interval: noise`; not a
        number where the release says nothing.
        """
        return self._errors()[0]

    @property
    def noise_errors(self) -> NDArray[np.float64]:
        """Standard errors from the noise only, shape (p,); not a number as `bse` is."""
        return self._errors()[1]

    @property
    def pvalues(self) -> NDArray[np.float64]:
        """The p values of each test that a coefficient of the population is 0; shape (p,)."""
        sizes = np.abs(self.params / self.bse)
        # Both tails of a normal distribution.
        return np.array([math.erfc(size / math.sqrt(2)) for size in sizes])

    def conf_int(self, level: float | None = None) -> NDArray[np.float64]:
        """Return intervals of the population's coefficients, shape (p, 2).

        They are infinite if the release reports no errors.

        Args:
            level: With what probability each interval holds; that of the release if None.

        Raises:
            ContractError: the level is not between 0 and 1.
        """
        return _ends(self.params, self.bse, self.level if level is None else level)

    def predict(self, table: Table, interval: float | None = None) -> NDArray[Any]:
        """Predict in the file's units, or classes; shape (n,).

        Args:
            interval: With what probability the population's line lies between two ends at each row,
                in columns next to its prediction: shape (n, 3), clipped to the range of the target.
                It is about the mean of such records, not about the value of one; infinite where the
                release says nothing.

        Raises:
            ContractError: an interval of classes is asked for, or its level is not in (0, 1).
        """
        predictions = super().predict(table)
        if interval is None:
            return predictions
        need(not self.domain.classes, ContractError, "classes have no intervals")
        errors = np.full(len(predictions), math.nan)
        if self.covariances is not None:
            total = self.covariances.total
            errors = self._by_rows(
                encode_table(self.domain, table),
                lambda phi: np.sqrt(np.einsum("ij,jk,ik->i", phi, total, phi)),
            )
        # The line itself is cut to the range, which keeps the cover of its ends.
        ends = _ends(self.score(encode_table(self.domain, table)), errors, interval)
        return np.column_stack([predictions, *map(self.domain.uncentre, ends.T)])

    def _errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.covariances is None:
            nothing = np.full(self.coefficients.size, math.nan)
            return nothing, nothing
        turned = self.covariances.turned(file_units(self.domain).turn)
        return np.sqrt(np.diag(turned.total)), np.sqrt(np.diag(turned.noise))

    def covers(self) -> tuple[str, str]:
        """Describe what the intervals of the noise, and those of the population, cover."""
        first = bases(self.domain)
        compared = f"; categories compare with {', '.join(first)}" if first else ""
        noise = f"noise only: the same fit to these records without noise{compared}"
        # No one but the publisher can know how the records were chosen.
        premise = "records that are independent draws from the population"
        if isinstance(size := self.domain.sampled, int):
            premise = f"records drawn without regard to their values from a population of {size}"
        error = (
            f"population: sampling error and noise, for {premise}, and a question chosen beforehand"
        )
        if self.interval == NOISE:
            error = "standard errors and p values are of the noise alone"
        population = (
            f"{error}; {self.method}; {self.clipped}; "
            f"p values are of {len(self.names)} coefficients, not corrected for their number"
        )
        return noise, population

    def description(self) -> Description:
        """Return the table of coefficients, with the intervals that were asked for."""
        ends = self.conf_int()
        edges = _ends(self.params, self.noise_errors, self.level)
        noise, population = self.covers()
        about: dict[str, tuple[Any, ...]] = {
            "coefficient": self.names,
            "standard_error": tuple(self.bse),
            "p_value": tuple(self.pvalues),
            "noise_share": tuple((self.noise_errors / self.bse) ** 2),
        }
        noise = f"{noise}; {population}" if self.interval == NOISE else noise
        intervals = PopulationIntervals(
            low=ends[:, 0], high=ends[:, 1], level=self.level, covers=self._reasoned(population)
        )
        table = Figures(
            about=about,
            estimate=self.params,
            low=edges[:, 0],
            high=edges[:, 1],
            level=self.level,
            covers=self._reasoned(noise),
            population=None if self.interval == NOISE else intervals,
        )
        # Both kinds, or the wider one in place of the other.
        table = table.of_population() if self.interval == POPULATION else table
        return Description(tables={"coefficients": table})

    def _reasoned(self, words: str) -> str:
        """Prefix what intervals cover with the reason why they say nothing, if there is one."""
        return f"{self.reason}; {words}" if self.reason else words

    def shown_summary(self) -> Summary:
        """Return the table as `summary` prints it."""
        return Summary(
            title=self.method,
            tables=(Listing.of(self._headings(), self._rows()),),
            sentences=(self._sentence(),),
        )

    def summary(self) -> str:
        """Return the table as text.

        Its columns: coefficient, standard error, z, p value, interval of the population, and the
        proportion of the variance that is noise.
        """
        headings = self._headings()
        lines = align([headings, *self._rows()], range(1, len(headings)))
        return "\n".join([f"{self.method}: {self.domain.target}", *lines, self._sentence()])

    def _headings(self) -> tuple[str, ...]:
        tail = (1 - self.level) / 2
        edges = (f"[{tail:g}", f"{1 - tail:g}]")
        return ("", "coef", "std err", "z", "P>|z|", *edges, "noise share")

    def _rows(self) -> list[tuple[str, ...]]:
        if self.covariances is None:
            return [
                (name, in_digits(value), *["-"] * 6)
                for name, value in zip(self.names, self.params.tolist(), strict=True)
            ]
        numbers = zip(
            self.names, self.params, self.bse, self.pvalues, self.conf_int(), self.noise_errors,
            strict=True,
        )  # fmt: skip
        # Ends are rounded outwards, so that what is printed covers no less.
        return [
            (
                name,
                cells[0],
                in_digits(error, direction=1),
                f"{value / error:.2f}",
                f"{p_value:.3f}" if p_value >= 0.001 else "<.001",
                *cells[1:],
                f"{(noise / error) ** 2:.2f}",
            )
            for name, value, error, p_value, ends, noise in numbers
            for cells in (interval_cells(value, *ends),)
        ]

    def _sentence(self) -> str:
        return f"{100 * self.level:g} % intervals; {self.covers()[1]}" if not self.reason else (
            f"{self.reason[0].upper()}{self.reason[1:]}."
        )  # fmt: skip

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the coefficients, and their covariances if there are any."""
        arrays = {"coefficients": self.coefficients}
        if self.covariances is not None:
            # In the units of the coefficients, which are those of the encoded columns.
            arrays |= {"covariance": self.covariances.total}
            arrays |= {"noise_covariance": self.covariances.noise}
        return arrays


def noise_intervals_of(
    domain: Domain, covariances: Covariances | None, reason: str
) -> NoiseIntervals:
    """Return the intervals of predictions, from the noise only."""
    if covariances is None:
        return NoIntervals(reason=reason)
    values, vectors = np.linalg.eigh(covariances.noise)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return LinearisedNoise(root=root, longest=Design().norm(domain))


def _ends(
    values: NDArray[np.float64], errors: NDArray[np.float64], level: float
) -> NDArray[np.float64]:
    """Return values -+ z errors, shape (p, 2)."""
    need(
        0 < level < 1, ContractError, f"the level of an interval is between 0 and 1, got {level!r}"
    )
    half = NormalDist().inv_cdf((1 + level) / 2) * np.where(np.isnan(errors), math.inf, errors)
    return np.column_stack([values - half, values + half])
