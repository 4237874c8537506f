"""The paper's statements for `dpcore theory`."""

import math

from dpcore.learners.statement import Statement
from dpcore_kernel_ridge import generalization, utility
from dpcore_kernel_ridge.bounds import lemma_2
from dpcore_models.theorems.ridge import ridge_replace_one

_PAPER = "Nie & Wang (2017)"
_SYMBOLS = {
    "m": "records",
    "M": "label_bound",
    "lam": "regularization",
    "G": "bound",
    "r": "smoothness",
}


def _choices_2(records: int, smoothness: float) -> dict[str, float]:
    return {
        "lambda": utility.regularization_2(records, smoothness),
        "rate": utility.rate_2(smoothness),
    }


def _choices_3_printed(records: int, smoothness: float) -> dict[str, float]:
    # As printed: the base is 1/sqrt(m), and the exponent is taken as it is.
    power = min(1 / 3, 4 * smoothness / (3 + 6 * smoothness))
    epsilon = math.pow(1 / math.sqrt(records), power)
    exponent = -2 / min(4, 3 + 2 * smoothness)
    return {"epsilon": epsilon, "lambda": math.pow(records * epsilon, exponent)}


def _choices_3(records: int, smoothness: float) -> dict[str, float]:
    return {
        "epsilon": utility.epsilon_3(records, smoothness),
        "lambda": utility.regularization_3(records, smoothness),
    }


def _lemma_3(records: int, deviation: float, bound: float) -> float:
    return 2 * math.exp(-records * deviation**2 / (2 * bound**2))


def _proposition_1_printed(
    kappa: float, label_bound: float, regularization: float, records: int, epsilon: float
) -> float:
    return kappa * lemma_2(kappa, label_bound, regularization, records) / epsilon


def _proposition_1(
    kappa: float, label_bound: float, regularization: float, records: int, epsilon: float
) -> float:
    return kappa * ridge_replace_one(kappa, label_bound, regularization, records) / epsilon


def _proposition_4_printed(
    kappa: float,
    label_bound: float,
    regularization: float,
    records: int,
    smoothness: float,
    norm: float,
) -> float:
    sample = 8 * math.sqrt(2 * math.pi) * label_bound**2 / math.sqrt(records)
    constant = math.pow(kappa, 4 * smoothness - 2) + math.pow(kappa, 4 * smoothness - 4) + 2
    return sample + math.pow(regularization, min(2 * smoothness, 1)) * constant * norm**2


def _proposition_4(kappa: float, regularization: float, smoothness: float, norm: float) -> float:
    # The sample error has mean 0; of an eigenvalue x the rest is lam x^(2r)/(x + lam).
    rate = math.pow(regularization, min(2 * smoothness, 1))
    return rate * math.pow(kappa, max(4 * smoothness - 2, 0)) * norm**2


STATEMENTS = {
    "kernel_ridge/lemma_3": Statement(
        title="The chance that a mean of m is farther than this from its expectation",
        source=f"{_PAPER}, Lemma 3",
        printed=_lemma_3,
        symbols={"m": "records", "B": "bound"},
    ),
    "kernel_ridge/proposition_1": Statement(
        title="The scale of the noise for one evaluation",
        source=f"{_PAPER}, Lemma 1 and Proposition 1",
        printed=_proposition_1_printed,
        corrected=_proposition_1,
        wrong="private for one evaluation at one point that is fixed without the data; for a "
        "function it is refuted",
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/proposition_4": Statement(
        title="Mean sample error and approximation error, f = L^r g, |g| <= norm",
        source=f"{_PAPER}, Proposition 4",
        printed=_proposition_4_printed,
        corrected=_proposition_4,
        wrong="true, though a step of its proof is false; the sample error has mean 0",
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/lemma_2": Statement(
        title="How far replacing one record moves kernel ridge, in the kernel's norm",
        source=f"{_PAPER}, Lemma 2",
        printed=lemma_2,
        corrected=ridge_replace_one,
        wrong="true, and 1.6 to 8 times larger than T4",
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/theorem_1": Statement(
        title="How far a private algorithm's mean and expectation may differ",
        source=f"{_PAPER}, Theorem 1",
        printed=generalization.generalization_printed,
        corrected=generalization.generalization,
        wrong="false above epsilon = 1.2564, where e^epsilon - 1 exceeds 2 epsilon",
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/proposition_2": Statement(
        title="How much larger the expected error is than the empirical one, at most",
        source=f"{_PAPER}, Proposition 2",
        printed=generalization.random_error_printed,
        corrected=generalization.random_error,
        wrong="2 epsilon for e^epsilon - 1, and Lemma 2 for T4",
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/proposition_3": Statement(
        title="What noise adds to the empirical error",
        source=f"{_PAPER}, Proposition 3",
        printed=generalization.noise_variance_printed,
        corrected=generalization.noise_variance,
        wrong="true; Lemma 2 for T4",
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/theorem_2": Statement(
        title="The constant of the rate",
        source=f"{_PAPER}, Theorem 2",
        printed=utility.constant_2_printed,
        corrected=utility.constant_2_corrected,
        wrong="its last term lacks the factor 1 + 2 epsilon",
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/theorem_2_choices": Statement(
        title="The choice of lambda, and the exponent of 1/m",
        source=f"{_PAPER}, Theorem 2",
        printed=_choices_2,
        symbols=_SYMBOLS,
    ),
    "kernel_ridge/theorem_3": Statement(
        title="The choice of epsilon and lambda",
        source=f"{_PAPER}, Theorem 3",
        printed=_choices_3_printed,
        corrected=_choices_3,
        wrong="the printed base 1/sqrt(m) does not give the claimed rate by the printed proof",
        symbols=_SYMBOLS,
    ),
}
