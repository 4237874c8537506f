"""Statements of the paper for `dpcore theory`, from the authors' public code and as derived."""

import math

import numpy as np

from dpcore.learners.statement import Statement
from dpcore_shifted_interpolation import printed
from dpcore_shifted_interpolation.clipping import softmax_contraction, softmax_expansion
from dpcore_shifted_interpolation.taut_string import least_mu

_PAPER = "Bok, Su & Altschuler (2024), read in their public code"
_SYMBOLS = {
    "L": "lipschitz",
    "n": "records",
    "b": "batch",
    "sigma": "std",
    "c": "contraction",
    "t": "steps",
    "l": "batches",
    "E": "epochs",
    "eta": "rate",
    "D": "diameter",
    "C": "clip",
    "lam": "regularization",
}
_SIDES = ("last iterate", "all iterates")


def _all_of_full_batch(lipschitz: float, records: int, std: float, steps: int) -> float:
    return lipschitz / (records * std) * math.sqrt(steps)


def _all_of_cyclic(lipschitz: float, batch: int, std: float, epochs: int) -> float:
    # A record is in one batch of each pass.
    return _all_of_full_batch(lipschitz, batch, std, epochs)


def _cyclic_place(
    lipschitz: float,
    batch: int,
    std: float,
    contraction: float,
    batches: int,
    epochs: int,
    place: int = 1,
) -> float:
    """By the string; of a record in batch number `place` of each pass, 1 for the first."""
    steps = int(batches) * int(epochs)
    shifts = np.where(np.arange(steps) % batches == place - 1, lipschitz / batch, 0.0)
    return least_mu(np.full(steps, float(contraction)), shifts, np.full(steps, float(std)))


def _steps(
    lipschitz: float, records: int, std: float, rate: float, regularization: float, steps: int
) -> dict[str, float]:
    """mu of three ways to publish the same noise in the flattest direction."""
    contraction = 1 - rate * regularization
    variance = (rate * std) ** 2 * (1 - contraction ** (2 * steps)) / (1 - contraction**2)
    move = lipschitz / records
    return {
        "last iterate": printed.full_batch(lipschitz, records, std, contraction, steps),
        "all iterates": _all_of_full_batch(lipschitz, records, std, steps),
        # A minimiser moves by L/(n lam).
        "minimiser": move / regularization / math.sqrt(variance),
    }


STATEMENTS = {
    "shifted_interpolation/full_batch": Statement(
        title="mu of noisy descent on all records, strongly convex and smooth",
        source=_PAPER,
        printed=printed.full_batch,
        corrected=_all_of_full_batch,
        labels=_SIDES,
        wrong="true, and attained by a quadratic in one dimension",
        symbols=_SYMBOLS,
    ),
    "shifted_interpolation/cyclic": Statement(
        title="mu of noisy descent on batches in a public cyclic order",
        source=_PAPER,
        printed=printed.cyclic,
        corrected=_all_of_cyclic,
        labels=_SIDES,
        wrong="true; the worst place is the last batch; with a single batch `full_batch` is lower",
        symbols=_SYMBOLS,
    ),
    "shifted_interpolation/place": Statement(
        title="mu of the same for a record in one of the batches, by the taut string",
        source="derived from the same theorem",
        corrected=_cyclic_place,
        symbols=_SYMBOLS,
    ),
    "shifted_interpolation/full_batch_in_set": Statement(
        title="mu of noisy descent projected on a convex set, convex and smooth",
        source=_PAPER,
        printed=printed.full_batch_in_set,
        wrong="true; all iterates cost less until about 4 D n/(L eta) steps",
        symbols=_SYMBOLS,
    ),
    "shifted_interpolation/cyclic_in_set": Statement(
        title="mu of many passes in a cyclic order, projected on a convex set",
        source=_PAPER,
        printed=printed.cyclic_in_set,
        wrong="true, and above the string; all iterates cost less in few passes",
        symbols=_SYMBOLS,
    ),
    "shifted_interpolation/steps": Statement(
        title="mu by what is published, at one noise in the flattest direction",
        source="derived from the same theorem",
        printed=_steps,
        labels=("mu", ""),
        symbols=_SYMBOLS,
    ),
    "shifted_interpolation/clipping": Statement(
        title="By how much a step on clipped gradients of several classes stretches distances",
        source=_PAPER,
        printed=softmax_contraction,
        corrected=softmax_expansion,
        labels=("assumed", "at least"),
        wrong="the clipped gradient is not that of a convex loss, so that the theorem does not "
        "apply to the paper's regression with several classes",
        symbols=_SYMBOLS,
    ),
}
