"""`randomness`: named streams of random words, public and secret, secure or a rehearsal.

A stream is named by a path, and handed out *from its start*: the same key and path give the same
words, and two paths never share a word. A public stream is SHAKE-256 over the key, the path and a
block counter, the same on every platform. A secret stream is AES-256 in counter mode under a key
of its own, SHAKE-256 of key and path, where `cryptography` is installed (the extra `fast`), and
SHAKE-256 elsewhere: either is as unpredictable as the 256-bit key. A rehearsal gives the same
words wherever the same of the two sources is installed.

Nothing is shared: no stream has state outside itself, and each query derives its own from the key.
So threads that work on different asks cannot disturb each other. Secure randomness serve in the
process that drew them alone; a forked process draws fresh ones from the operating system. One
`Stream` object is read by one thread of one process.

* `PublicRandomness`: the key is published with the release, so that anyone can redraw the features.
* `SecretRandomness`: the key never leaves the process. The runtime hands out views of it: `learner`
  views to a private function, noise streams to a mechanism, and its own streams (shuffle, split)
  that no one else can name. Views are keyed by (release, query, number of the query).
"""

from __future__ import annotations

import enum
import functools
import hashlib
import math
import secrets
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import fingerprint
from dpcore.errors import ContractError, RandomnessWithheldError
from dpcore.single_use import SingleUse

Path = tuple[str | int, ...]
Made = TypeVar("Made")

_FIRST_BLOCK = 32  # words in block 0; each next block is twice as long, up to _LARGEST_BLOCK
_LARGEST_BLOCK = 1 << 16
_PUBLIC_KEY_BITS = 63  # fits every JSON and YAML reader


def _encode(path: Path) -> bytes:
    """Return an injective encoding of a path, so that distinct paths never share a stream."""
    # Each part carries its kind and its length, so that no two paths give the same bytes.
    parts = [(b"i" if isinstance(p, int) else b"s", str(p).encode()) for p in path]
    return b"".join(tag + struct.pack(">Q", len(text)) + text for tag, text in parts)


class _Source(Protocol):
    """Where words come from. How many, at least, a request takes is the caller's business."""

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return the next words: exactly `count`, or from a source of blocks any number > 0."""

    def by_place(self) -> Words:
        """Return all words from the start, by their positions."""


class _Shake:
    """SHAKE-256 over a seed and a block counter; gives the next block whatever is asked for."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._block = 0

    def take(self, count: int) -> NDArray[np.uint64]:
        words = _shake_block(self._seed, self._block)
        self._block += 1
        return words

    def by_place(self) -> Words:
        return _ShakeWords(self._seed)


def _shake_block(seed: bytes, block: int) -> NDArray[np.uint64]:
    size = min(_FIRST_BLOCK << min(block, 16), _LARGEST_BLOCK)
    digest = hashlib.shake_256(seed + struct.pack(">Q", block)).digest(8 * size)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


class Words(ABC):
    """The words of a stream by their places. PRIVATE where the stream is secret."""

    @abstractmethod
    def at(self, first: int, count: int) -> NDArray[np.uint64]:
        """Return words first, ..., first + count - 1 of the stream, from 0, shape (count,)."""


@attrs.frozen(repr=False)
class _ShakeWords(Words):
    """Its seed holds the key of the whole run, so that it is not pickled."""

    _seed: bytes

    def at(self, first: int, count: int) -> NDArray[np.uint64]:
        pieces, start, block = [np.empty(0, dtype=np.uint64)], 0, 0
        # Earlier blocks are passed over unread: their sizes are public.
        while start < first + count:
            size = min(_FIRST_BLOCK << min(block, 16), _LARGEST_BLOCK)
            if start + size > first:
                words = _shake_block(self._seed, block)
                pieces.append(words[max(0, first - start) : first + count - start])
            start, block = start + size, block + 1
        return np.concatenate(pieces)

    def __reduce__(self) -> Any:
        raise TypeError("secret words travel only where cryptography is installed (extra fast)")


@attrs.frozen(repr=False)
class _AesWords(Words):
    """Its key is a digest of the run's key and the stream's path: it reveals nothing of either."""

    _key: bytes

    def at(self, first: int, count: int) -> NDArray[np.uint64]:
        # A block holds two words, so that an odd start drops the first of its block.
        return _Aes.keyed(self._key, first // 2).take(count + first % 2)[first % 2 :]


class _Aes:
    """The key stream of AES-256 in counter mode, under a key that no other seed has.

    Raises:
        ImportError: `cryptography` is not installed.
    """

    def __init__(self, seed: bytes) -> None:
        self._start(hashlib.shake_256(b"dpcore AES-256-CTR" + seed).digest(32), 0)

    def _start(self, key: bytes, block: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._key = key
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(block.to_bytes(16, "big")))

    @functools.cached_property
    def _encryptor(self) -> Any:
        # Opened by the first word: many streams of a run are never read.
        return self._cipher.encryptor()

    @classmethod
    def keyed(cls, key: bytes, block: int) -> Self:
        """Return the stream under a key, from a block of two words on."""
        source = cls.__new__(cls)
        source._start(key, block)
        return source

    def by_place(self) -> Words:
        return _AesWords(self._key)

    def take(self, count: int) -> NDArray[np.uint64]:
        stream = self._encryptor.update(bytes(8 * count))
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False)


def _source(seed: bytes, *, secret: bool) -> _Source:
    """Return the fastest cryptographic source that the kind of stream allows."""
    if secret:
        try:
            return _Aes(seed)
        except ImportError:
            pass
    return _Shake(seed)


class Stream:
    """One stream of random words, read forward from its start.

    Not shared between threads: each query gets a stream of its own.

    Args:
        secret: No one needs to redraw it elsewhere, so that a faster source may be used.

    `by_place` gives all its words from the start, by their places.
    """

    def __init__(self, key: bytes, path: Path, *, secret: bool = False) -> None:
        seed = struct.pack(">Q", len(key)) + key + _encode(path)
        self._source = _source(seed, secret=secret)
        self.by_place = self._source.by_place()
        self._buffer: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` independent uniform 64-bit words, shape (count,).

        The array may be read-only.

        However requests are cut into pieces, the words are the same.
        """
        parts = [self._buffer[:count]]
        self._buffer = self._buffer[count:]
        size = parts[0].size
        while size < count:
            block = self._source.take(count - size)
            parts.append(block[: count - size])
            self._buffer = block[count - size :]
            size += parts[-1].size
        return np.concatenate(parts) if len(parts) > 2 or parts[0].size else parts[-1]

    def uniform(self, shape: int | Sequence[int]) -> NDArray[np.float64]:
        """Draw uniformly from the open interval (0, 1), 53 bits each."""
        words = self.words(_size(shape)) >> np.uint64(11)
        draws = (words.astype(np.float64) + 0.5) * 2.0**-53  # the last of them would round to 1
        return np.minimum(draws, 1 - 2.0**-53).reshape(shape)

    def normal(self, shape: int | Sequence[int]) -> NDArray[np.float64]:
        """Draw standard normal numbers by inversion: one sign bit and 63 bits of half-tail each.

        Real arithmetic: the low bits of a float sum with such a draw are not protected
        (Mironov 2012), and tails beyond about 9.2 standard deviations are never drawn.
        """
        words = self.words(_size(shape))
        half_tail = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        return (-sign * scipy.special.ndtri(np.minimum(half_tail, 0.5))).reshape(shape)

    def permutation(self, count: int) -> NDArray[np.intp]:
        """Draw a uniform order of range(count) by sorting 64-bit words; draw again if words tie.

        Given that no two are equal, every order is equally likely.
        """
        while True:
            words = self.words(count)
            order = np.argsort(words, kind="stable")
            if not np.any(words[order[1:]] == words[order[:-1]]):
                return order

    def subset(self, count: int, size: int) -> NDArray[np.intp]:
        """Return the first `size` >= 1 places of `permutation(count)`, without sorting all words.

        Given that the smallest words differ from each other and from the rest, every ordered choice
        is equally likely.
        """
        while True:
            words = self.words(count)
            last = np.partition(words, size - 1)[size - 1]
            # More than `size` places are a tie at the last word: all words are drawn again.
            places = np.flatnonzero(words <= last)
            places = places[np.argsort(words[places], kind="stable")]
            if len(places) == size and np.all(words[places[1:]] != words[places[:-1]]):
                return places

    def generator(self) -> np.random.Generator:
        """Return numpy's generator, seeded with 256 bits of this stream, for draws outside claims.

        PCG64DXSM is not cryptographic, and numpy may change its streams between versions: noise
        and published features use the methods above.
        """
        return np.random.Generator(np.random.PCG64DXSM(self.words(4).tolist()))


def _size(shape: int | Sequence[int]) -> int:
    return int(math.prod(shape) if isinstance(shape, Sequence) else shape)


@attrs.frozen
class PublicRandomness:
    """Randomness whose key is published next to the release. What they fix is public knowledge.

    Args:
        key: None while a plan is priced without randomness: reading a stream then raises.
    """

    key: int | None
    _latest: list[tuple[tuple[bytes, ...], Any]] = attrs.field(
        factory=list, init=False, eq=False, repr=False
    )

    def __getstate__(self) -> tuple[int | None]:
        return (self.key,)

    def __setstate__(self, state: tuple[int | None]) -> None:
        object.__setattr__(self, "key", state[0])
        object.__setattr__(self, "_latest", [])

    def once(self, recipe: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """Return what `make` draws from this randomness: once for calls in a row with one recipe.

        Only the latest is kept; it is shared, so that no one may change it.

        Args:
            recipe: Everything but the key that determines the result.
        """
        mark = fingerprint(*recipe)
        # An empty mark says that sameness cannot be reported: then everything is drawn again.
        latest: tuple[tuple[bytes, ...], Any] = self._latest[0] if self._latest else ((), None)
        if not mark or mark != latest[0]:
            latest = (mark, make())
            self._latest[:] = [latest]
        result: Made = latest[1]
        return result

    def again(self) -> PublicRandomness:
        """Return the same randomness without cached draws: for another run, or its other side."""
        return PublicRandomness(self.key)

    @classmethod
    def draw(cls) -> PublicRandomness:
        """Create randomness with a fresh key from the operating system."""
        return cls(secrets.randbits(_PUBLIC_KEY_BITS))

    def stream(self, name: str) -> Stream:
        """Return the public stream called `name`, from its start.

        Raises:
            RandomnessWithheldError: there is no key yet.
        """
        if self.key is None:
            raise RandomnessWithheldError(
                f"the public stream {name!r} was read before a key was drawn"
            )
        return Stream(b"public", (self.key, name))


class Role(enum.Enum):
    """Who may read a secret stream; part of its path, so that roles never share one."""

    RUNTIME = "runtime"
    LEARNER = "learner"
    NOISE = "noise"


@attrs.frozen
class LearnerRandomness:
    """The secret randomness of one private call. A bound must hold for every value of them."""

    _key: bytes = attrs.field(repr=False)
    _path: Path
    _names: list[str] = attrs.field(factory=list, init=False, eq=False, repr=False)

    @property
    def read(self) -> bool:
        """Whether any stream was asked for."""
        return bool(self._names)

    def stream(self, name: str) -> Stream:
        """Return the secret stream called `name` of this call only, from its start."""
        self._names.append(name)
        return Stream(self._key, (*self._path, name), secret=True)


class SecretRandomness(SingleUse):
    """The secret key of one run. Only the runtime holds it.

    Secure randomness serve one run, in the process that drew them: a second one would repeat the
    noise, and the difference of the two releases would be exact.

    Args:
        secure: False for a rehearsal, whose key is known: no guarantee can rest on it.
    """

    def __init__(self, key: bytes, *, secure: bool) -> None:
        super().__init__()
        self._key, self._secure = key, secure

    @property
    def secure(self) -> bool:
        """Whether no one knows the key."""
        return self._secure

    def begin(self) -> None:
        """Begin the run that this randomness is for.

        Raises:
            ContractError: secure randomness has served a run already, or were drawn by another
                process.
        """
        # A rehearsal may serve often: its noise is known, and protects no one.
        if self.secure:
            self._serve("these secret randomness have served a run: draw new ones")

    @classmethod
    def draw(cls) -> SecretRandomness:
        """Create randomness from 256 fresh bits of the operating system: new noise in every run."""
        return cls(secrets.token_bytes(32), secure=True)

    @classmethod
    def rehearsal(cls, seed: int) -> SecretRandomness:
        """Create known randomness for rehearsals and tests: nothing released with it is private."""
        return cls(f"rehearsal {seed}".encode(), secure=False)

    def runtime(self, name: str) -> Stream:
        """Return a stream of the runtime's own: shuffle, split, sampling."""
        return self._stream((Role.RUNTIME.value, name))

    def sampling(self, release: int, query: str, number: int) -> Stream:
        """Return the stream that samples or orders the records of one query; runtime only."""
        # Release, query and number of the ask: no two queries share a stream.
        return self._stream((Role.RUNTIME.value, "sampling", release, query, number))

    def learner(self, release: int, query: str, number: int) -> LearnerRandomness:
        """Return the randomness of the private function for one query."""
        return LearnerRandomness(self._private(), (Role.LEARNER.value, release, query, number))

    def noise(self, release: int, query: str, number: int) -> Stream:
        """Return the noise of one ask: the mechanism's only."""
        return self._stream((Role.NOISE.value, release, query, number))

    def _stream(self, path: Path) -> Stream:
        return Stream(self._private(), path, secret=True)

    def _private(self) -> bytes:
        """Return the key, in the process that may use it."""
        if self.secure:
            self._require_here(ContractError)
        return self._key
