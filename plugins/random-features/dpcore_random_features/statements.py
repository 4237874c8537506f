"""The paper's statements for `dpcore theory`."""

from dpcore.learning.statement import Statement
from dpcore_random_features import utility
from dpcore_random_features.min_norm import lemma_9

_PAPER = "Liao, Needell, Schaeffer & Xue (2025)"
_SYMBOLS = {"N": "count", "m": "records", "d": "columns"}


def _theorem_12_printed(
    count: int, records: int, eta: float, epsilon: float, delta_p: float, delta: float
) -> float:
    # Theorem 12 takes Z2 from Lemma 13: the printed theorem stands on the printed lemma.
    square = utility.lemma_13_printed(count, eta, epsilon, delta_p, delta)
    return utility.theorem_12(count, records, eta, square, delta)


def _theorem_12(count: int, eta: float, epsilon: float, delta_p: float, delta: float) -> float:
    variance = utility.noise_variance(count, eta, epsilon, delta_p)
    return utility.noise_error(count, variance, delta)


def _conditions(
    columns: int,
    records: int,
    count: int,
    eta: float,
    delta: float,
    data_variance: float,
    frequency_variance: float,
) -> dict[str, float]:
    conditions = utility.theorem_8_conditions(
        columns, records, count, eta, delta, data_variance, frequency_variance
    )
    return conditions._asdict()


def _theorem_11_printed(count: int, records: int, eta: float, delta: float, norm: float) -> float:
    return utility.theorem_11_printed(count, records, eta, delta, norm)


STATEMENTS = {
    "random_features/lemma_9": Statement(
        title="The distance of the coefficients of two data sets that both keep the assumptions",
        source=f"{_PAPER}, Lemma 9",
        printed=lemma_9,
        wrong="no neighbour of a data set need keep the assumptions: not a sensitivity",
        symbols=_SYMBOLS,
    ),
    "random_features/lemma_13": Statement(
        title="The squared norm of the noise",
        source=f"{_PAPER}, Lemma 13",
        printed=utility.lemma_13_printed,
        corrected=utility.lemma_13_corrected,
        wrong="the leading 2 must be 8, and the second term lacks ln(1.25/delta_p)/epsilon",
        symbols=_SYMBOLS,
    ),
    "random_features/gamma_norm": Statement(
        title="The norm of the pure-privacy noise",
        source=f"{_PAPER}, after Lemma 13",
        printed=utility.gamma_norm_printed,
        corrected=utility.gamma_norm_corrected,
        wrong="too small by a factor sqrt(2)",
        symbols=_SYMBOLS,
    ),
    "random_features/theorem_8": Statement(
        title="The conditions, each as what is there over what is needed",
        source=f"{_PAPER}, Theorem 8",
        printed=_conditions,
        wrong="two of three hold up to constants that the paper does not give; public data only",
        symbols=_SYMBOLS,
    ),
    "random_features/theorem_10": Statement(
        title="Error of the private model",
        source=f"{_PAPER}, Theorem 10",
        corrected=utility.theorem_10_corrected,
        wrong="(1 - eta) is a typo for (1 - 2 eta); the union bound gives 1 - 11 delta; it does "
        "not tend to 0 as N grows",
        symbols=_SYMBOLS,
    ),
    "random_features/theorem_11": Statement(
        title="Error of the non-private model",
        source=f"{_PAPER}, Theorem 11",
        printed=_theorem_11_printed,
        corrected=utility.theorem_11_corrected,
        wrong="(32 log/m)^(1/4) must be (8192 log/m)^(1/4)",
        symbols=_SYMBOLS,
    ),
    "random_features/theorem_12": Statement(
        title="Distance of the private model from the non-private one",
        source=f"{_PAPER}, Theorem 12",
        printed=_theorem_12_printed,
        corrected=_theorem_12,
        wrong="rests on Lemma 13, and is loose: the mean square is exactly N sigma^2",
        symbols=_SYMBOLS,
    ),
}
