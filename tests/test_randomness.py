"""Streams: the same words however asked for, apart from each other, safe across threads, forks."""

import hashlib
import os
import struct
import sys
import threading

import numpy as np
import pytest
from scipy import stats

from dpcore.randomness import PublicRandomness, SecretRandomness, Stream

SOURCES = ["aes", "shake"]


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With `cryptography`, and as if it were not installed."""
    if request.param == "shake":
        for name in list(sys.modules):
            if name.startswith("cryptography"):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "cryptography", None)
    else:
        pytest.importorskip("cryptography")
    return str(request.param)


def noise(number: int = 1, seed: int = 5) -> Stream:
    return SecretRandomness.rehearsal(seed).noise(0, "weights", number)


def test_words_do_not_depend_on_how_they_are_asked_for(source: str) -> None:
    whole = noise().words(100_000)
    for sizes in ([1] * 40, [0, 7, 0, 31, 33, 5000, 1], [99_999, 1]):
        pieces = noise()
        cut = np.concatenate([pieces.words(size) for size in sizes])
        assert (cut == whole[: cut.size]).all()


def test_a_secret_stream_is_the_stated_key_stream() -> None:
    """Against AES-256-CTR and SHAKE-256 written out again here."""
    ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers")
    parts = [(b"s", b"noise"), (b"i", b"0"), (b"s", b"weights"), (b"i", b"1")]
    path = b"".join(tag + struct.pack(">Q", len(text)) + text for tag, text in parts)
    seed = struct.pack(">Q", len(b"rehearsal 5")) + b"rehearsal 5" + path
    key = hashlib.shake_256(b"dpcore AES-256-CTR" + seed).digest(32)
    cipher = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.CTR(bytes(16)))
    expected = np.frombuffer(cipher.encryptor().update(bytes(800)), dtype="<u8")
    assert (noise().words(100) == expected).all()


def test_a_public_stream_gives_the_same_words_everywhere(source: str) -> None:
    words = PublicRandomness(7).stream("features").words(3)
    path = b"i" + struct.pack(">Q", 1) + b"7" + b"s" + struct.pack(">Q", 8) + b"features"
    seed = struct.pack(">Q", 6) + b"public" + path
    block = hashlib.shake_256(seed + struct.pack(">Q", 0)).digest(24)
    assert words.tolist() == list(struct.unpack("<3Q", block))


def test_every_ask_and_role_has_words_of_its_own(source: str) -> None:
    randomness = SecretRandomness.rehearsal(1)
    streams = [
        randomness.runtime("shuffle"),
        randomness.learner(0, "weights", 1).stream("learner"),
        randomness.noise(0, "weights", 1),
        randomness.noise(0, "weights", 2),
        randomness.noise(1, "weights", 1),
        randomness.noise(0, "weight", 1),
        SecretRandomness.rehearsal(2).noise(0, "weights", 1),
    ]
    firsts = np.concatenate([s.words(1000) for s in streams])
    assert np.unique(firsts).size == firsts.size


def test_words_have_no_visible_structure(source: str) -> None:
    words = noise().words(200_000)
    bits = np.unpackbits(words.view(np.uint8))
    assert stats.binomtest(int(bits.sum()), bits.size).pvalue > 1e-4
    assert stats.chisquare(np.bincount(words.view(np.uint8), minlength=256)).pvalue > 1e-4


def test_threads_on_different_asks_do_not_disturb_each_other(source: str) -> None:
    single = [noise(number).words(20_000) for number in range(8)]
    got: dict[int, np.ndarray] = {}

    def draw(number: int) -> None:
        stream = noise(number)
        got[number] = np.concatenate([stream.words(50) for _ in range(400)])

    threads = [threading.Thread(target=draw, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((got[number] == single[number]).all() for number in range(8))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_derives_the_same_asks_and_draws_fresh_coins_of_its_own(
    source: str,
) -> None:
    randomness = SecretRandomness.rehearsal(3)
    randomness.noise(0, "weights", 1).words(100)  # what the parent has drawn changes nothing
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        fresh = SecretRandomness.draw().noise(0, "weights", 1).words(2)
        same = randomness.noise(0, "weights", 2).words(2)
        os.write(write, same.tobytes() + fresh.tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 1000), dtype=np.uint64)
    os.close(read)
    os.close(write)
    assert (theirs[:2] == randomness.noise(0, "weights", 2).words(2)).all()
    assert (theirs[2:] != SecretRandomness.draw().noise(0, "weights", 1).words(2)).all()


def test_a_rehearsal_repeats_itself_and_secure_coins_do_not(source: str) -> None:
    assert (noise().words(10) == noise().words(10)).all()
    one, two = (SecretRandomness.draw().noise(0, "w", 1).words(10) for _ in range(2))
    assert (one != two).all()


def test_uniform_draws_are_inside_the_open_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """At both ends of the words: (2^53 - 1/2) 2^-53 rounds to 1."""
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    monkeypatch.setattr(Stream, "words", lambda self, count: ends)
    low, high = noise().uniform(2)
    assert 0 < low < high < 1


def test_uniform_and_normal_draws_have_their_laws(source: str) -> None:
    assert stats.kstest(noise().uniform(100_000), "uniform").pvalue > 1e-4
    assert stats.kstest(noise().normal(100_000), "norm").pvalue > 1e-4
    assert stats.kstest(1.05 * noise().normal(100_000), "norm").pvalue < 1e-4
    assert noise().normal((2, 3)).shape == (2, 3)
