"""The paper's statements for `dpcore theory`."""

import math

import scipy.stats

from dpcore.learners.statement import Statement
from dpcore_sgd import utility
from dpcore_sgd.printed import corrected_sensitivity, noise_multiplier, printed_sensitivity, uses

_PAPER = "Wang & Guo (2024)"
_SYMBOLS = {
    "n": "records",
    "T": "steps",
    "eta": "rate",
    "c": "label_bound",
    "M": "features",
    "sigma": "std",
}


def _corrected(
    rate: float, kappa: float, label_bound: float, records: int, steps: int, gamma: float
) -> float:
    # The Chernoff bound on the uses of a record is the paper's own and holds.
    most = uses(records, steps, gamma)
    return corrected_sensitivity(
        rate=rate, kappa=kappa, label_bound=label_bound, steps=steps, most=most
    )


def _noise_printed(
    rate: float,
    kappa: float,
    label_bound: float,
    records: int,
    steps: int,
    epsilon: float,
    delta: float,
) -> float:
    # Algorithm 1 calls Theorem 2 at gamma = delta/2.
    movement = printed_sensitivity(
        rate=rate,
        kappa=kappa,
        label_bound=label_bound,
        records=records,
        steps=steps,
        gamma=delta / 2,
    )
    return movement * noise_multiplier(epsilon, delta)


def _noise(
    rate: float,
    kappa: float,
    label_bound: float,
    records: int,
    steps: int,
    epsilon: float,
    delta: float,
) -> float:
    movement = _corrected(rate, kappa, label_bound, records, steps, delta / 2)
    return movement * noise_multiplier(epsilon, delta)


def _schedule(records: int, r: float, alpha: float) -> dict[str, float]:
    small = utility.schedule(records, r, alpha)
    large = utility.schedule(records, r, alpha, small_steps=False)
    return {
        # Both schedules of the theorem, side by side: they share the number of features.
        "rate": small.rate,
        "steps": small.steps,
        "larger rate": large.rate,
        "its steps": large.steps,
        "features": small.features,
    }


def _exponents_printed(r: float, alpha: float) -> dict[str, float]:
    return {
        "without noise": utility.statistical_exponent(r, alpha),
        "of the noise": utility.privacy_exponent_printed(r, alpha),
    }


def _exponents(r: float, alpha: float) -> dict[str, float]:
    return {
        "without noise": utility.statistical_exponent(r, alpha),
        "of the noise": utility.privacy_exponent(r, alpha),
    }


def _lemma_3_1(rate: float, kappa: float, label_bound: float, steps: int) -> float:
    size = rate * kappa**2
    return label_bound**2 / ((1 - size) * (1 - size - size * math.log(steps)))


def _lemma_3_4_printed(rate: float, b: float) -> float:
    return _lemma_3_4(rate, b, 1.0)


def _lemma_3_4(rate: float, b: float, a: float) -> float:
    return math.pow(b / (math.e * a * rate), b)


def _lemma_3_5_printed(features: int, t: float) -> float:
    return math.exp(-features * t**2 / 8)


def _lemma_3_5(features: int, t: float) -> float:
    return float(scipy.stats.chi2.sf(features * (1 + t), features))


def _proposition_4_6_printed(r: float, regularization: float, norm: float) -> float:
    return norm**2 * math.pow(regularization, 2 * r)


def _proposition_4_6(r: float, regularization: float, norm: float) -> float:
    constant = math.pow(r, r) * math.pow(1 - r, 1 - r)
    return _proposition_4_6_printed(r, regularization, norm) * constant**2


STATEMENTS = {
    "sgd/lemma_3_1": Statement(
        title="The expected training error of every iterate",
        source=f"{_PAPER}, Lemma 3.1",
        printed=_lemma_3_1,
        symbols=_SYMBOLS,
    ),
    "sgd/lemma_3_4": Statement(
        title="The norm of (I - eta A)^a A^b",
        source=f"{_PAPER}, Lemma 3.4",
        printed=_lemma_3_4_printed,
        corrected=_lemma_3_4,
        wrong="lacks a, which its proof has: false for small a, such as a = .01 and b = 1",
        symbols=_SYMBOLS,
    ),
    "sgd/lemma_3_5": Statement(
        title="The chance that M squared normals exceed M (1 + t)",
        source=f"{_PAPER}, Lemma 3.5",
        printed=_lemma_3_5_printed,
        corrected=_lemma_3_5,
        labels=("printed", "exact"),
        wrong="true for t < 1",
        symbols=_SYMBOLS,
    ),
    "sgd/proposition_4_6": Statement(
        title="The squared bias of ridge where f = L^r g, |g| <= R",
        source=f"{_PAPER}, Proposition 4.6",
        printed=_proposition_4_6_printed,
        corrected=_proposition_4_6,
        wrong="true for r <= 1; the corrected constant is attained",
        symbols={**_SYMBOLS, "lam": "regularization", "R": "norm"},
    ),
    "sgd/theorem_1": Statement(
        title="Exponents of 1/n in the excess error",
        source=f"{_PAPER}, Theorem 1",
        printed=_exponents_printed,
        corrected=_exponents,
        wrong="true, and loose by a factor of the number of features",
    ),
    "sgd/theorem_1_choices": Statement(
        title="The choice of rate, steps and number of features, up to constants and logarithms",
        source=f"{_PAPER}, Theorem 1",
        printed=_schedule,
        symbols=_SYMBOLS,
    ),
    "sgd/theorem_2": Statement(
        title="How far replacing one record moves the weights, with probability 1 - gamma",
        source=f"{_PAPER}, Theorem 2",
        printed=printed_sensitivity,
        corrected=_corrected,
        wrong="a square root is missing, and kappa^2 represents c kappa^2",
        symbols=_SYMBOLS,
    ),
    "sgd/theorem_3": Statement(
        title="The noise of Algorithm 1, of each weight",
        source=f"{_PAPER}, Theorem 3",
        printed=_noise_printed,
        corrected=_noise,
        wrong="as Theorem 2; and the formula needs epsilon < 1, which is not stated",
        symbols=_SYMBOLS,
    ),
    "sgd/proposition_4_1": Statement(
        title="What noise costs in mean square",
        source=f"{_PAPER}, Proposition 4.1",
        printed=utility.noise_error_printed,
        corrected=utility.noise_error,
        wrong="true, and loose by a factor of about M",
        symbols=_SYMBOLS,
    ),
}
