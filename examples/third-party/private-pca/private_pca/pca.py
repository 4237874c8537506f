"""Private PCA: principal axes of the encoded columns, around the middle of their declared ranges.

A record adds the products x_i x_j of its row, those with i < j times sqrt(2): a vector as long as
|x|^2. Two such vectors have the inner product (x.y)^2 >= 0. The core's `SumBound` needs no more.

Intervals (Weyl): if each of the m released numbers is off by at most w, the matrix is off by a
matrix with a Frobenius norm of at most w sqrt(m), and no eigenvalue is off by more than that.
"""

import attrs
import numpy as np

import dpcore
from dpcore.checks import positive_integer
from dpcore.domain.domain import encoded_names
from dpcore.encoding.tables import encode_table
from dpcore.learners.conversation import Conversation
from dpcore.models import Described, Description, Figures, IntervalPicture, Matrix, Transformer


@attrs.frozen(kw_only=True, eq=False)
class Components(Transformer, Described):
    """Axes, shape (k, columns); spreads: sums of squares along them, each off by at most
    `half_width`.
    """

    domain: dpcore.Domain
    axes: np.ndarray
    squares: np.ndarray
    half_width: float = attrs.field(converter=float)

    def arrays(self):
        return {"axes": self.axes, "spreads": self.squares}

    def transform(self, table):
        return encode_table(self.domain, table) @ self.axes.T

    def column_names(self):
        return tuple(f"pca{number}" for number in range(len(self.axes)))

    def description(self):
        low, high = self.squares - self.half_width, self.squares + self.half_width
        table = Figures(about={"component": self.column_names()}, estimate=self.squares,
                        low=low, high=high, level=0.95, joint=True)  # fmt: skip
        intervals = IntervalPicture(title="Sums of squares", at=self.column_names(),
                                    values=self.squares,
                                    low=low, high=high, up="sum of squares, encoded")  # fmt: skip
        axes = Matrix(title="Axes", names=self.column_names(), values=self.axes,
                      at=encoded_names(self.domain), unit="weight")  # fmt: skip
        return Description(tables={"spreads": table}, pictures=(intervals, axes))


@attrs.frozen(kw_only=True)
class PrivatePCA(dpcore.SummingLearner, Conversation):
    """The first principal axes of noisy second moments. Total: see `SummingLearner`."""

    publishes = Components
    components: int = attrs.field(default=2, validator=positive_integer)

    def queries(self, public):
        size = public.domain.width * (public.domain.width + 1) // 2
        products = dpcore.Sum(clip=public.domain.feature_norm**2, sign="acute")
        return (dpcore.SumQuery(name="products", shape=(size,), distance="l2", sum=products),)

    def contributions(self, query, block, public):
        first, second = np.triu_indices(public.domain.width)
        products = block.features[:, first] * block.features[:, second]
        return products * np.where(first < second, np.sqrt(2), 1)

    def model(self, state):
        (answer,), public = state.answers, state.public
        width = public.domain.width
        first, second = np.triu_indices(width)
        matrix = np.zeros((width, width))
        matrix[first, second] = answer.value / np.where(first < second, np.sqrt(2), 1)
        squares, axes = np.linalg.eigh(matrix, UPLO="U")
        size, noise = len(first), answer.noise_distribution
        half_width = np.inf if noise is None else noise.within(0.05 / size) * np.sqrt(size)
        last = slice(None, -self.components - 1, -1)
        return Components(
            domain=public.domain,
            axes=axes.T[last],
            squares=squares[last],
            half_width=half_width,
        )
