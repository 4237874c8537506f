"""What a run on Dask sends and logs: no record, no label, no cell of the file."""

import asyncio
import contextlib
import io
import logging
import secrets
import time
from functools import partial

import attrs
import numpy as np
import pytest

import dpcore
from dpcore.encoding.tables import project_table
from dpcore.errors import RequestError
from dpcore.exact import Exact
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import BlockError, Task
from dpcore.source import Part
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_engines import dask as dask_module
from dpcore_engines.dask import Dask
from dpcore_engines.dask_cluster import DaskCluster
from dpcore_linear import ClippedGradient

from builders import price_learner
from doubles import domain, table

distributed = pytest.importorskip("distributed")
RECORDS, WORKERS = 200, 5


@pytest.fixture(scope="module")
def address():
    """A scheduler and five workers of this process, whose messages go through TCP all the same."""
    with distributed.LocalCluster(
        n_workers=WORKERS,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:
        yield cluster.scheduler_address


@contextlib.contextmanager
def captured(monkeypatch):
    """All bytes that are written to sockets, and all that is logged at any level."""
    from distributed.comm import tcp

    frames, lines, real = [], io.StringIO(), tcp.to_frames

    async def kept(*args, **kwargs):
        found = await real(*args, **kwargs)
        frames.extend(bytes(frame) for frame in found)
        return found

    handler = logging.StreamHandler(lines)
    logger = logging.getLogger("distributed")
    before = logger.level
    monkeypatch.setattr(tcp, "to_frames", kept)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield frames, lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def written(path):
    """A file of records with many digits, and its cells that nothing else would hold."""
    rows = {name: np.asarray(column, float) for name, column in table(RECORDS).items()}
    cells = [[repr(float(value)) for value in column] for column in rows.values()]
    lines = [",".join(rows), *(",".join(row) for row in zip(*cells, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return rows, [cell for column in cells for cell in column if len(cell) > 9]


def private(rows, cells):
    """Texts of cells, and the bytes of every record and label as a worker holds them."""
    records = project_table(domain(RECORDS), rows)
    found = [cell.encode() for cell in cells]
    found += [row.tobytes() for row in records.features]
    found += [label.tobytes() for label in records.labels if abs(label) > 1e-3]
    found += [value.tobytes() for value in rows["y"] if value != np.rint(value)]
    return found


def made():
    return price_learner(
        ClippedGradient(features=Identity(), clip=0.3, steps=2), domain=domain(RECORDS)
    )


def test_no_record_and_no_label_travels_or_is_logged(address, tmp_path, monkeypatch):
    rows, cells = written(tmp_path / "data.csv")
    source = open_source(str(tmp_path / "data.csv"), None, Csv(), domain(RECORDS))
    assert len(cells) > RECORDS

    def fails(block):
        raise ValueError(repr(block.labels))

    with (
        captured(monkeypatch) as (frames, lines),
        distributed.Client(address, set_as_default=False) as client,
        Dask(client) as engine,
    ):
        made().run(source, secret=dpcore.SecretRandomness.rehearsal(1), engine=engine)
        with pytest.raises(BlockError):
            engine.total(Task(part=fails, zero=()))
    sent = b"".join(frames)
    report = lines.getvalue()
    assert b"dpcore-ask-" in sent  # the capture sees what travels
    assert b"data.csv" in sent
    for secret in private(rows, cells):
        assert secret not in sent
    assert report  # and what is logged
    assert not any(cell in report for cell in cells)
    assert "ValueError" not in report


def test_the_capture_finds_a_record_that_travels(address, tmp_path, monkeypatch):
    rows, cells = written(tmp_path / "data.csv")
    records = project_table(domain(RECORDS), rows)
    with (
        captured(monkeypatch) as (frames, _),
        distributed.Client(address, set_as_default=False) as client,
    ):
        client.submit(len, records.features[7].tobytes(), pure=False).result()
    assert any(secret in b"".join(frames) for secret in private(rows, cells))


@attrs.frozen(eq=False)
class Rows(Part):
    """So many records, which every worker makes for itself."""

    count: int

    def batches(self):
        yield table(self.count)


def test_this_process_sends_a_task_once_and_holds_one_total(address, monkeypatch):
    monkeypatch.setattr(dask_module, "_ADDED", 2)
    monkeypatch.setattr(dask_module, "_SERVED", 2)
    payload, covered = secrets.token_bytes(4096), []

    def count(block, payload=payload):
        return (Exact.of([len(block)], 0),)

    real = Dask._wait

    def wait(self, requests, *args):
        # Three levels merge five totals, and of all their tasks one is this process's.
        client.sync(asyncio.sleep, 0)  # what was let go is counted off in the thread of the client
        covered.append([key for key in client.futures if key.startswith("dpcore-ask-")])
        real(self, requests, *args)

    with distributed.Client(address, set_as_default=False) as client, Dask(client) as engine:
        lengths = (10, 20, 30, 40, 100)
        engine.load([Rows(count) for count in lengths], partial(project_table, domain(RECORDS)))
        with captured(monkeypatch) as (frames, _):
            monkeypatch.setattr(Dask, "_wait", wait)
            (total,) = engine.total(Task(part=count, zero=(Exact.zeros((1,), 0),)))
    assert total.integers() == [RECORDS]
    assert [len(keys) for keys in covered] == [1, 1]
    # Here to the scheduler, from there to one worker, and once to each other worker.
    assert b"".join(frames).count(payload) <= 1 + WORKERS


def test_an_interrupted_ask_leaves_the_client_connected_and_nothing_on_workers(
    address, monkeypatch
):
    monkeypatch.setattr(dask_module, "_ADDED", 2)

    def slow(block):
        time.sleep(0.3)
        return (Exact.of([len(block)], 0),)

    def interrupt(*args):
        raise KeyboardInterrupt

    with distributed.Client(address, set_as_default=False) as client:
        with Dask(client) as engine:
            engine.load([Rows(40)] * WORKERS, partial(project_table, domain(RECORDS)))
            task = Task(part=slow, zero=(Exact.zeros((1,), 0),))
            monkeypatch.setattr(Dask, "_wait", interrupt)
            with pytest.raises(KeyboardInterrupt):
                engine.total(task)
        for _ in range(200):
            covered = [*client.run(lambda dask_worker: [*dask_worker.data]).values()]
            if not any(covered):
                break
            time.sleep(0.05)
        assert not any(covered)
        assert client.submit(len, b"four", pure=False).result(timeout=20) == 4


def test_a_failure_is_the_first_of_all_bundles(address, monkeypatch):
    monkeypatch.setattr(dask_module, "_ADDED", 2)

    def fails(block):
        if len(block) > 40:
            raise ValueError
        if len(block) > 20:
            raise KeyError
        return ()

    with distributed.Client(address, set_as_default=False) as client, Dask(client) as engine:
        engine.load(
            [Rows(count) for count in (10, 20, 30, 40, 100)],
            partial(project_table, domain(RECORDS)),
        )
        with pytest.raises(BlockError, match=r"failed \(KeyError\)$"):
            engine.total(Task(part=fails, zero=()))


def test_a_choice_is_checked_before_anything_is_opened(address, tmp_path):
    for choice, message in [
        (DaskCluster(), "dask needs the address"),
        (DaskCluster(scheduler=address, workers=2), "dask needs the address"),
    ]:
        with pytest.raises(RequestError, match=message), choice.opened(tmp_path):
            pass
    with DaskCluster(scheduler=address).opened(tmp_path) as engine:
        assert isinstance(engine, Dask)
    assert not list(tmp_path.iterdir())
