"""Randomness, reservations and oracles serve once: the law finds each way to double them."""

import copy
import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest

from dpcore import SecretRandomness
from dpcore.errors import ContractError
from dpcore.single_use import SingleUse
from dpcore_attacks.laws.mechanisms.once import NOT_DOUBLED, not_doubled, once_verdicts

from builders import price_label_mean
from doubles import table


class Thing(SingleUse):
    def use(self):
        self._require_here(ContractError)


class Copied(Thing):
    def __copy__(self):
        return Copied()


class DeepCopied(Thing):
    def __deepcopy__(self, memo):
        return DeepCopied()


class Pickled(Thing):
    def __reduce_ex__(self, protocol):
        return Pickled, ()


class Forked(Thing):
    def use(self):
        pass


class LaterPickled(Thing):
    served = False

    def use(self):
        super().use()
        self.served = True

    def __reduce_ex__(self, protocol):
        return (LaterPickled, ()) if self.served else super().__reduce_ex__(protocol)


@pytest.mark.parametrize("kind", [Copied, DeepCopied, Pickled, Forked, LaterPickled])
def test_the_law_finds_each_way_to_double(kind):
    thing = kind()
    assert not_doubled("thing", thing, thing.use).failed
    right = Thing()
    assert not not_doubled("thing", right, right.use).failed


def test_coins_and_reservations_pass_the_law():
    found = list(once_verdicts())
    assert [verdict.law for verdict in found] == [NOT_DOUBLED] * 2
    assert [verdict for verdict in found if verdict.failed] == []


@pytest.mark.parametrize("way", ["__reduce__", "__getstate__"])
def test_what_other_serialisers_call_is_refused_too(way):
    with pytest.raises(TypeError, match="not copied or pickled"):
        getattr(SecretRandomness.draw(), way)()


def test_secure_coins_that_served_are_still_not_doubled():
    randomness = SecretRandomness.draw()
    randomness.begin()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="repeat its noise"):
            attempt(randomness)
    with pytest.raises(ContractError, match="have served a run"):
        randomness.begin()


def test_a_process_identifier_that_comes_back_is_no_way_in(monkeypatch):
    randomness = SecretRandomness.draw()
    read, write = os.pipe()
    mine = os.getpid()
    child = os.fork()
    if child == 0:
        os.getpid = lambda: mine
        try:
            randomness.noise(0, "q", 1)
            os.write(write, b"drawn")
        except ContractError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"refused"
    os.close(read)
    os.close(write)


def _worker(label):
    try:
        found = PLAN.run(table(), secret=RANDOMNESS)
    except ContractError as error:
        return str(error)
    return found.guarantee.status


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_two_forked_workers_do_not_publish_with_the_same_coins():
    global RANDOMNESS, PLAN
    RANDOMNESS = SecretRandomness.draw()
    PLAN = price_label_mean()
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=fork) as pool:
        report = [*pool.map(_worker, [0, 1])]
    assert all("another process" in one for one in report), report
