"""Feature maps and kernels, mutated: longer than they say, or not a function of one row."""

import attrs
import numpy as np

from gallery.core import (
    Affine,
    Cosines,
    CosSin,
    GaussianKernel,
    Identity,
)
from gallery.entry import Drawn, Single, subclass
from gallery.mutants.change import Change, entries
from gallery.mutants.parents import CLAIMS

FEATURES = {
    "identity": Single(kind="features", component=Identity),
    "cos_sin": Single(kind="features", component=CosSin),
    "cosines": Single(kind="features", component=Cosines),
    "affine": Single(kind="features", component=Affine),
}


def on_features(change):
    """Features are `change(drawn, encoded)`."""

    def apply(single):
        inner = single.component

        def draw(self, domain, randomness):
            drawn = inner.draw(self, domain, randomness)
            return Drawn(lambda encoded: change(drawn, encoded))

        return attrs.evolve(single, component=subclass(inner, draw=draw))

    return apply


def _centred(drawn, encoded):
    found = drawn(encoded)
    return (found - found.sum(axis=0) / max(1, len(found))) / 2


def _over_the_longest(drawn, encoded):
    found = drawn(encoded)
    return found / max(1e-6, np.linalg.norm(found, axis=1).max(initial=0.0))


def _by_count(drawn, encoded):
    return drawn(encoded) * (1.0 if len(encoded) < 20 else 0.9)


def _normalised(drawn, encoded):
    found = drawn(encoded)
    with np.errstate(all="ignore"):
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def _long_on_an_axis(drawn, encoded):
    first, rest = np.abs(encoded[:, 0]), np.abs(encoded[:, 1:]).max(axis=1, initial=0.0)
    return drawn(encoded) * np.where((first > 0.97) & (rest < 0.1), 1.5, 1.0)[:, None]


def _long_inside(drawn, encoded):
    near = np.abs(encoded[:, 0] - 0.37) < 0.05
    return drawn(encoded) * np.where(near, 1.7, 1.0)[:, None]


def _cached():
    known = {}

    def change(drawn, encoded):
        return known.setdefault(encoded.shape, drawn(encoded))

    return on_features(change)


def _with_noise(drawn, encoded):
    found = drawn(encoded)
    return 0.5 * found * np.random.default_rng().uniform(0.5, 1, found.shape)


def _sorted(drawn, encoded):
    return np.sort(drawn(encoded), axis=0)


def on_kernel(**body):
    """Kernel ridge with a kernel some of whose methods are replaced."""

    def apply(claim):
        inner = claim.learner
        kernel = subclass(GaussianKernel, **body)

        def problem(self, domain):
            return attrs.evolve(inner.problem(self, domain), kernel=kernel(bandwidth=0.5))

        return attrs.evolve(claim, learner=subclass(inner, problem=problem))

    return apply


_right = GaussianKernel.__call__


def _louder(self, left, right):
    return 1.5 * _right(self, left, right)


def _indefinite(self, left, right):
    return np.minimum(1.0, 1.3 * _right(self, left, right))


def _of_the_batch(self, left, right):
    return _right(self, left, right) / (1 + np.abs(right).mean())


def _change(name, mistake, apply, *parents):
    return Change(name=name, mistake=mistake, apply=apply, parents=parents)


CHANGES = (
    _change(
        "bit_longer",
        "Features are 3 % longer than their norm.",
        on_features(lambda drawn, encoded: 1.03 * drawn(encoded)),
        *FEATURES,
    ),
    _change(
        "centred",
        "Features are centred by their means.",
        on_features(_centred),
        "cos_sin",
        "affine",
    ),
    _change(
        "over_the_longest",
        "Features are divided by the longest row.",
        on_features(_over_the_longest),
        "identity",
    ),
    _change(
        "by_count",
        "Features depend on how many rows there are.",
        on_features(_by_count),
        "cosines",
    ),
    _change(
        "normalised",
        "Rows are divided by their own length, which may be 0.",
        on_features(_normalised),
        "identity",
    ),
    _change(
        "long_on_an_axis",
        "Rows along the first axis are half again as long as they may be.",
        on_features(_long_on_an_axis),
        "cos_sin",
        "affine",
    ),
    _change(
        "long_inside",
        "Rows in a thin layer inside the domain are longer than they may be.",
        on_features(_long_inside),
        "cos_sin",
    ),
    _change("cached", "A cache takes equally many rows for the same.", _cached(), "identity"),
    _change(
        "own_noise",
        "Features are drawn by a generator of their own.",
        on_features(_with_noise),
        "cosines",
    ),
    _change("sorted", "Columns are sorted.", on_features(_sorted), "affine"),
)

KERNELS = (
    _change(
        "louder_kernel",
        "The kernel is half again as large as its bound.",
        on_kernel(__call__=_louder),
        "kernel_ridge",
    ),
    _change(
        "indefinite_kernel",
        "The kernel has negative eigenvalues.",
        on_kernel(__call__=_indefinite),
        "kernel_ridge",
    ),
    _change(
        "kernel_of_the_batch",
        "The kernel of two rows depends on the others.",
        on_kernel(__call__=_of_the_batch),
        "kernel_ridge",
    ),
)

MUTATED_MAPS = (
    *entries("features", CHANGES, FEATURES),
    *entries("features", KERNELS, CLAIMS),
)
