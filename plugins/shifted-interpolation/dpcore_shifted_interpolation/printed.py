r"""The printed formulas, read in the authors' public code (jinhobok/shifted_interpolation_dp).

Noisy descent :math:`\theta\leftarrow\theta-\eta(\text{mean gradient}+N(0,\sigma^2I))` on a loss
that is m-strongly convex and M-smooth, with :math:`c=\max(|1-\eta m|,|1-\eta M|)`; only the last
iterate is published. L bounds the *difference* of two records' gradients. Each is the optimum of
:mod:`dpcore_shifted_interpolation.taut_string` for its steps.
"""

import math


def geometric_square(contraction: float, steps: float) -> float:
    """(1 - c^t)/(1 + c^t) (1 + c)/(1 - c), the square that `steps` equal steps cost; t at c = 1."""
    if contraction == 1:
        return steps
    late = math.pow(contraction, steps)
    return (1 - late) / (1 + late) * (1 + contraction) / (1 - contraction)


def full_batch(lipschitz: float, records: int, std: float, contraction: float, steps: int) -> float:
    """mu of the last of `steps` steps on all records."""
    return lipschitz / (records * std) * math.sqrt(geometric_square(contraction, steps))


def cyclic(
    lipschitz: float, batch: int, std: float, contraction: float, batches: int, epochs: int
) -> float:
    """mu of the last iterate of `epochs` passes over `batches` batches in a public order.

    The worst place of a record is the last batch.
    """
    per_epoch = contraction**batches
    noise_distribution = 1 / batches
    if contraction != 1:
        noise_distribution = (1 - contraction**2) / (1 - per_epoch**2)
    # The last step is paid in full; the passes before it contract as steps of c^l each.
    earlier = geometric_square(per_epoch, epochs - 1)
    square = 1 + contraction ** (2 * batches - 2) * noise_distribution * earlier
    return lipschitz / (batch * std) * math.sqrt(square)


def full_batch_in_set(
    lipschitz: float, records: int, std: float, rate: float, steps: int, diameter: float
) -> float:
    """mu of the last of `steps` steps, projected on a convex set; convex losses, rate <= 2/M."""
    move = lipschitz / records
    if steps < diameter / (move * rate):
        return move / std * math.sqrt(steps)  # composition
    square = 3 * move * diameter / rate + move**2 * math.ceil(diameter / (move * rate))
    return math.sqrt(square) / std


def cyclic_in_set(
    lipschitz: float, batch: int, std: float, rate: float, batches: int, diameter: float
) -> float:
    """mu of the last iterate of many passes, projected on a convex set; needs D b/(L eta) steps."""
    move = lipschitz / batch
    square = 3 * move * diameter / (rate * batches)
    return math.sqrt(square + move**2 * (1 + math.ceil(diameter / (move * rate)) / batches)) / std
