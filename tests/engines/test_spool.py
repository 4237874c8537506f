"""A spool gives back what was put, however it is read, while it grows."""

import os

import numpy as np
import pytest

from dpcore.errors import SourceError
from dpcore.private.engines.spool import Spool


def test_bytes_come_back_mapped_and_read_while_the_spool_grows(tmp_path):
    spool, rng, kept = Spool(tmp_path), np.random.default_rng(0), []
    for count in (5, 4096, 1, 70_000):
        array = rng.integers(0, 255, count).astype(np.uint8)
        kept.append((spool.put([array]), array))
        for place, expected in kept:
            view = spool.mapped(place, expected.size)
            assert np.array_equal(np.frombuffer(view, np.uint8), expected)
            spool.drop_pages(
                place, expected.size
            )  # its pages go, and come back when they are looked at
            assert np.array_equal(np.frombuffer(view, np.uint8), expected)
            assert np.array_equal(
                np.frombuffer(spool.read(place, expected.size), np.uint8), expected
            )
    assert spool.mapped(0, 0).nbytes == 0
    spool.close()
    spool.close()


def test_a_spool_that_became_shorter_is_refused(tmp_path):
    spool = Spool(tmp_path)
    place = spool.put([np.arange(10_000.0)])
    os.ftruncate(spool._file.fileno(), 100)
    with pytest.raises(SourceError, match="shorter than it was"):
        spool.read(place, 80_000)
    with pytest.raises(SourceError, match="shorter than it was"):
        spool.mapped(place, 80_000)
    spool.close()


def test_mapped_bytes_cannot_be_written(tmp_path):
    spool = Spool(tmp_path)
    place = spool.put([np.arange(10.0)])
    assert spool.mapped(place, 80).readonly
    spool.close()
