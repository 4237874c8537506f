"""The paper's statements for `dpcore theory`."""

import math

from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.learners.statement import Statement
from dpcore_random_features import utility
from dpcore_random_features.min_norm import lemma_9

_PAPER = "Liao, Needell, Schaeffer & Xue (2025)"
_SYMBOLS = {"N": "count", "m": "records", "d": "columns"}


def _theorem_12_printed(
    count: int, records: int, eta: float, epsilon: float, delta_p: float, delta: float
) -> float:
    # Theorem 12 takes Z2 from Lemma 13: the printed theorem is on the printed lemma.
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


def _theorem_7_printed(epsilon: float, delta_p: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta_p)) / epsilon


def _theorem_7(epsilon: float, delta_p: float) -> float:
    return 1 / gaussian_mu(epsilon, delta_p)


def _lemma_14_printed(count: int, norm: float) -> float:
    return norm**2 / count


def _lemma_14(count: int, norm: float) -> float:
    # |f|^4/T^2 at the printed T = sqrt(N) |f|^2, whatever |f| is.
    return 1 / count


def _lemma_15_printed(count: int, norm: float, delta: float) -> float:
    return _lemma_15(count, 1.0, delta) * norm**2


def _lemma_15(count: int, norm: float, delta: float) -> float:
    log = math.log(2 / delta)
    return (32 * log**2 * norm**4 + 4 * norm**2 * log) / count


def _lemma_16_printed(count: int, norm: float, delta: float) -> float:
    return 12 * math.log(2 / delta) * norm**2 / count


def _lemma_16(count: int, norm: float, delta: float) -> float:
    log = math.log(2 / delta)
    return (norm**2 + 4 * norm**4 * log + math.sqrt(2 * norm**6 * log)) / count


def _equation_9_printed(std: float, group_square: float, square: float) -> float:
    return _equation_9(std, group_square, square) / 2


def _equation_9(std: float, group_square: float, square: float) -> float:
    return std**2 * abs(group_square - square)


STATEMENTS = {
    "random_features/theorem_7": Statement(
        title="The Gaussian noise of (epsilon, delta), over the sensitivity",
        source=f"{_PAPER}, Theorem 7; Wang & Guo (2024), Lemma 1.1, which asks for no epsilon < 1",
        printed=_theorem_7_printed,
        corrected=_theorem_7,
        wrong="true below epsilon 1, and 30 % loose there; false from 8.4 on at delta 1e-5",
    ),
    "random_features/equation_9": Statement(
        title="The gap of a group's excessive risk, from mean squared lengths of features",
        source=f"{_PAPER}, equation (9) with its printed trace E|x|^2",
        printed=_equation_9_printed,
        corrected=_equation_9,
        wrong="the trace of the Hessian of (f - y)^2 is 2 E|x|^2; then (9) is exact",
    ),
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
    "random_features/lemma_14": Statement(
        title="Squared distance of the target from the mean of its truncation, T = sqrt(N) |f|^2",
        source=f"{_PAPER}, Lemma 14; Lemma 11 of its first version",
        printed=_lemma_14_printed,
        corrected=_lemma_14,
        wrong="|f|^2/N belongs to T = sqrt(N) |f|; at the printed T it is false: let alpha be 0.9 "
        "with probability 1/2, else 0, and N = 4",
        symbols=_SYMBOLS,
    ),
    "random_features/lemma_15": Statement(
        title="Squared distance of the truncated target from its mean, T = sqrt(N) |f|^2",
        source=f"{_PAPER}, Lemma 15; Lemma 12 of its first version",
        printed=_lemma_15_printed,
        corrected=_lemma_15,
        wrong="the proof gives |f|^4 for the printed |f|^2 of the first term",
        symbols=_SYMBOLS,
    ),
    "random_features/lemma_16": Statement(
        title="Squared norm of the best coefficients, T = sqrt(N) |f|^2",
        source=f"{_PAPER}, Lemma 16; Lemma 13 of its first version",
        printed=_lemma_16_printed,
        corrected=_lemma_16,
        wrong="false at the printed T: N = 1, delta = .016, alpha = 61 with probability .0165, "
        "else 0; true at T = sqrt(N) |f|",
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
