"""The paper's statements for `dpcore theory`."""

import math

import scipy.stats

from dpcore.learners.statement import Statement
from dpcore_ntk import calculators, error_bounds
from dpcore_ntk.row_movement import matrix_movement

_PAPER = "Gu, Liang, Sha, Shi & Song (2024)"
_SYMBOLS = {
    "n": "records",
    "k": "samples",
    "m": "neurons",
    "d": "width",
    "lam": "regularization",
    "beta": "radius",
    "B": "norm",
    "sigma2": "weight_variance",
    "s": "largest",
}


def _lemma_a_1_printed(t: float) -> float:
    return math.exp(-t)


def _lemma_a_1(samples: int, t: float) -> dict[str, float]:
    middle = 2 * math.sqrt(samples * t)
    return {
        "above": float(scipy.stats.chi2.sf(samples + middle + 2 * t, samples)),
        "below": float(scipy.stats.chi2.cdf(samples - middle, samples)),
    }


def _fact_a_4_printed(weight_variance: float) -> float:
    return 3 * weight_variance


def _fact_a_4(weight_variance: float) -> float:
    return 3 * weight_variance**2


STATEMENTS = {
    "ntk/lemma_a_1": Statement(
        title="The chances that a chi-square of k is far from k",
        source=f"{_PAPER}, Lemma A.1",
        printed=_lemma_a_1_printed,
        corrected=_lemma_a_1,
        labels=("printed", "exact"),
        wrong="true",
        symbols=_SYMBOLS,
    ),
    "ntk/fact_a_4": Statement(
        title="The fourth moment of a normal number",
        source=f"{_PAPER}, Fact A.4",
        printed=_fact_a_4_printed,
        corrected=_fact_a_4,
        wrong="3 sigma^2 represents 3 sigma^4",
        symbols=_SYMBOLS,
    ),
    "ntk/condition_5_5": Statement(
        title="How far one record moves the kernel matrix, in Frobenius norm",
        source=f"{_PAPER}, Condition 5.5 and E.13",
        printed=calculators.matrix_movement_printed,
        corrected=matrix_movement,
        wrong="the constant is left out, and sigma^2 is where s belongs",
        symbols=_SYMBOLS,
    ),
    "ntk/definition_5_2": Statement(
        title="The movement that k samples allow",
        source=f"{_PAPER}, Definition 5.2",
        printed=calculators.allowed_movement,
        symbols=_SYMBOLS,
    ),
    "ntk/equation_1": Statement(
        title="How many samples may be drawn",
        source=f"{_PAPER}, equation (1)",
        printed=calculators.samples_equation_1,
        corrected=calculators.samples_corrected,
        wrong="its derivation gives B^6, asks for k >= 8 ln(1/delta) and epsilon < 1, and lacks a "
        "constant; the sound number is `samples_sound`, without any promise",
        symbols=_SYMBOLS,
    ),
    "ntk/lemma_4_3": Statement(
        title="How far the private prediction is from the other",
        source=f"{_PAPER}, Lemma 4.3",
        printed=error_bounds.prediction_error_printed,
        corrected=error_bounds.prediction_error,
        wrong="constants are left out; sigma^2 represents s, and rho needs n^2 where n is enough",
        symbols=_SYMBOLS,
    ),
    "ntk/lemma_5_7": Statement(
        title="How far the inverse from k samples is from the other",
        source=f"{_PAPER}, Lemma 5.7",
        printed=error_bounds.inverse_error_printed,
        corrected=error_bounds.inverse_error,
        wrong="loose in rho (n^2 for n) and in eta_max; the denominator of the sampled inverse is "
        "(1 - rho) eta_min + lambda",
        symbols=_SYMBOLS,
    ),
    "ntk/lemma_5_9": Statement(
        title="The largest noise of a coordinate of an input",
        source=f"{_PAPER}, Lemma 5.9",
        printed=calculators.input_noise_bound,
        symbols=_SYMBOLS,
    ),
    "ntk/lemma_5_10": Statement(
        title="How far the noise moves the kernel at a point",
        source=f"{_PAPER}, Lemma 5.10",
        printed=calculators.kernel_error_printed,
        corrected=calculators.kernel_error_corrected,
        wrong="lacks s, and what the noise adds to the norm of an input",
        symbols={**_SYMBOLS, "B_L": "noise_bound"},
    ),
    "ntk/lemma_e_10": Statement(
        title="How far an entry of the drawn kernel matrix is from its mean",
        source=f"{_PAPER}, Lemma E.10",
        printed=error_bounds.entry_error_printed,
        corrected=error_bounds.entry_error,
        wrong="the constant is left out; d is not needed, nor a condition on m",
        symbols=_SYMBOLS,
    ),
    "ntk/lemma_e_11": Statement(
        title="How far the drawn kernel matrix is from its mean, in Frobenius norm",
        source=f"{_PAPER}, Lemma E.11",
        printed=error_bounds.matrix_error_printed,
        corrected=error_bounds.matrix_error,
        wrong="as Lemma E.10",
        symbols=_SYMBOLS,
    ),
    "ntk/lemma_e_12": Statement(
        title="How far one record moves the drawn kernel matrix, in Frobenius norm",
        source=f"{_PAPER}, Lemma E.12",
        printed=error_bounds.matrix_sensitivity_printed,
        corrected=error_bounds.matrix_sensitivity,
        wrong="the drawn weights are known: no probability and no n epsilon_1 is needed, but s",
        symbols=_SYMBOLS,
    ),
    "ntk/theorem_4_4": Statement(
        title="Privacy and error of Algorithm 2, under the promise of eta_min",
        source=f"{_PAPER}, Theorem 4.4",
        printed=error_bounds.main_theorem_printed,
        corrected=error_bounds.main_theorem,
        wrong="not private without the promise: two equal inputs, one moved, have delta = 1 for "
        "every epsilon; labels are not protected",
        symbols=_SYMBOLS,
    ),
}
