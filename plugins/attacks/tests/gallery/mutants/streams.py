"""Streams of random words that are worse than those they are made from."""

import numpy as np

from dpcore.randomness import Stream


class Weak(Stream):
    """Words that `change(inner, count)` makes; all draws come from words."""

    def __init__(self, inner, change):
        self._inner, self._change = inner, change

    def words(self, count):
        return self._change(self._inner, count)


def weak(change):
    """From a stream to one with other words."""
    return lambda stream: Weak(stream, change)


def seeded(bits):
    """A generator whose seed has few bits, drawn once from the stream."""

    def make(stream):
        seed = int(stream.words(1)[0]) >> (64 - bits)
        generator = np.random.default_rng(seed)
        return Weak(stream, lambda _, n: generator.integers(0, 1 << 64, n, dtype=np.uint64))

    return make


def fixed(stream):
    """The same words every time."""
    generator = np.random.default_rng(5)
    return Weak(stream, lambda _, n: generator.integers(0, 1 << 64, n, dtype=np.uint64))


def tiled(size):
    """Every request repeats its first `size` words."""
    return weak(lambda inner, n: np.resize(inner.words(min(size, max(1, n))), n))


def coarse(bits):
    """Words of which only the first bits vary, and the last, which is a sign."""
    low, half = np.uint64(64 - bits), np.uint64(1 << (62 - bits))

    def change(inner, n):
        words = inner.words(n)
        return (words >> low << low) | half | (words & np.uint64(1))

    return weak(change)
