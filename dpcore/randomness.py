"""Coins: named streams of random words, public and secret, secure or a rehearsal.

A stream is named by a path, and handed out *from its start*: the same key and path give the same
words, on every platform, and two paths never share a word. Words come from SHAKE-256 over the key,
the path and a block counter, so a secret stream is as unpredictable as its 256-bit key.

* `PublicCoins`: the key is published with the release, so that anyone can redraw the features.
* `SecretCoins`: the key never leaves the process. The runtime hands out views of it: `learner`
  views to a private function, noise streams to a mechanism, and its own streams (shuffle, split)
  that nobody else can name. Views are keyed by (release, query, number of the ask).
"""

import enum
import hashlib
import secrets
import struct
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpcore.errors import CoinsWithheldError

Path = tuple[str | int, ...]

_FIRST_BLOCK = 32  # words in block 0; each next block is twice as long, up to _LARGEST_BLOCK
_LARGEST_BLOCK = 1 << 16
_PUBLIC_KEY_BITS = 63  # fits every JSON and YAML reader


def _encode(path: Path) -> bytes:
    """An injective encoding of a path, so that distinct paths never share a stream."""
    parts = [(b"i" if isinstance(p, int) else b"s", str(p).encode()) for p in path]
    return b"".join(tag + struct.pack(">Q", len(text)) + text for tag, text in parts)


class Stream:
    """One stream of random words, read forward from its start.

    Not shared between threads: each ask gets a stream of its own.
    """

    def __init__(self, key: bytes, path: Path) -> None:
        self._seed = struct.pack(">Q", len(key)) + key + _encode(path)
        self._block = 0
        self._left: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` independent uniform 64-bit words, shape (count,)."""
        parts = [self._left[:count]]
        self._left = self._left[count:]
        have = parts[0].size
        while have < count:
            block = self._next_block()
            parts.append(block[: count - have])
            self._left = block[count - have :]
            have += parts[-1].size
        return np.concatenate(parts)

    def _next_block(self) -> NDArray[np.uint64]:
        size = min(_FIRST_BLOCK << min(self._block, 16), _LARGEST_BLOCK)
        digest = hashlib.shake_256(self._seed + struct.pack(">Q", self._block)).digest(8 * size)
        self._block += 1
        return np.frombuffer(digest, dtype="<u8").astype(np.uint64)

    def uniform(self, shape: int | Sequence[int]) -> NDArray[np.float64]:
        """Uniform draws from the open interval (0, 1), 53 bits each."""
        words = self.words(_size(shape)) >> np.uint64(11)
        return ((words.astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)

    def normal(self, shape: int | Sequence[int]) -> NDArray[np.float64]:
        """Standard normal draws by inversion: one sign bit and 63 bits of half-tail each.

        Real arithmetic: the low bits of a float sum with such a draw are not protected
        (Mironov 2012), and tails beyond about 9.2 standard deviations are never drawn.
        """
        words = self.words(_size(shape))
        half_tail = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        return (-sign * special.ndtri(np.minimum(half_tail, 0.5))).reshape(shape)

    def permutation(self, count: int) -> NDArray[np.intp]:
        """A uniform order of range(count), by sorting 64-bit words (ties: about count^2/2^65)."""
        return np.argsort(self.words(count), kind="stable")

    def generator(self) -> np.random.Generator:
        """A numpy generator seeded with 256 bits of this stream, for draws that no claim needs.

        PCG64DXSM is not cryptographic, and numpy may change its streams between versions: noise
        and published features use the methods above.
        """
        return np.random.Generator(np.random.PCG64DXSM(self.words(4).tolist()))


def _size(shape: int | Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


@attrs.frozen
class PublicCoins:
    """Coins whose key is published beside the release. What they fix is public knowledge.

    Args:
        key: None while a plan is priced without coins: reading a stream then raises.
    """

    key: int | None

    @classmethod
    def draw(cls) -> "PublicCoins":
        """Coins with a fresh key from the operating system."""
        return cls(secrets.randbits(_PUBLIC_KEY_BITS))

    def stream(self, name: str) -> Stream:
        """The public stream called `name`, from its start.

        Raises:
            CoinsWithheldError: there is no key yet.
        """
        if self.key is None:
            raise CoinsWithheldError(f"the public stream {name!r} was read before a key was drawn")
        return Stream(b"public", (self.key, name))


class Role(enum.Enum):
    """Who may read a secret stream; part of its path, so that roles never share one."""

    RUNTIME = "runtime"
    LEARNER = "learner"
    NOISE = "noise"


@attrs.frozen
class LearnerCoins:
    """The secret coins of one private call. A bound must hold for every value of them."""

    _key: bytes = attrs.field(repr=False)
    _path: Path

    def stream(self, name: str) -> Stream:
        """The secret stream called `name` of this call alone, from its start."""
        return Stream(self._key, (*self._path, name))


@attrs.frozen
class SecretCoins:
    """The secret key of one run. Only the runtime holds it.

    Args:
        secure: False for a rehearsal, whose key is known: no guarantee can rest on it.
    """

    _key: bytes = attrs.field(repr=False)
    secure: bool

    @classmethod
    def draw(cls) -> "SecretCoins":
        """256 fresh bits from the operating system: new noise in every run."""
        return cls(secrets.token_bytes(32), secure=True)

    @classmethod
    def rehearsal(cls, seed: int) -> "SecretCoins":
        """Known coins, for rehearsals and tests: whatever they release is not private."""
        return cls(f"rehearsal {seed}".encode(), secure=False)

    def runtime(self, name: str) -> Stream:
        """A stream of the runtime's own: shuffle, split, sampling."""
        return Stream(self._key, (Role.RUNTIME.value, name))

    def learner(self, release: int, query: str, number: int) -> LearnerCoins:
        """The coins of the private function for one ask."""
        return LearnerCoins(self._key, (Role.LEARNER.value, release, query, number))

    def noise(self, release: int, query: str, number: int) -> Stream:
        """The noise of one ask: the mechanism's alone."""
        return Stream(self._key, (Role.NOISE.value, release, query, number))
