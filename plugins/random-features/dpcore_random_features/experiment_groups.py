r"""What the fairness experiments of the paper run. Nothing here is private.

The paper compares its random features with *regularised least squares* on the columns themselves,
and gives both the same noise: of the standard deviation that N features have.

Source: github.com/liaochunyang/DPRFM at 7470664; Table 2 has no code.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@attrs.frozen(kw_only=True, eq=False)
class RidgeFit:
    """Coefficients of the columns as they come."""

    coefficients: Floats

    def features(self, x: Floats) -> Floats:
        """Return the columns, shape (n, d)."""
        return x


def fit_ridge(
    x: Floats, y: Floats, randomness: np.random.Generator, *, regularization: float
) -> RidgeFit:
    r"""Least squares on the columns with a ridge: :math:`(X^TX+\lambda I)^{-1}X^Ty`."""
    # In sum form, as the paper has it: no division by the number of records.
    gram = x.T @ x + regularization * np.eye(x.shape[1])
    return RidgeFit(coefficients=np.asarray(np.linalg.solve(gram, x.T @ y), dtype=np.float64))
