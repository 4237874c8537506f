"""Every reading of a ledger verifies what it rests on; damaged text is a clear error."""

import json
import sqlite3

import pytest

from dpcore import REPLACE_LABEL, REPLACE_ONE, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.errors import LedgerError
from dpcore.ledger import Charge
from dpcore.ledger.journal import canonical, chained


def charge(mu=0.1, adjacency=REPLACE_ONE, frame=""):
    return Charge(events=((GaussianEvent(mu=mu, adjacency=adjacency), 1),), frame=frame)


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "people.ledger"
    return Ledger.create(path, epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)


def change(ledger, number, alter, again=False):
    """Alter one row's body behind the ledger's back; `again` forges its own digest, too."""
    connection = sqlite3.connect(ledger.journal.path)
    connection.execute("DROP TRIGGER no_change")
    rows = connection.execute("SELECT * FROM journal ORDER BY number").fetchall()
    _, kind, body, digest = rows[number - 1]
    body = alter(body)
    if again:
        digest = chained(rows[number - 2][3], number, kind, body)
    sets = "UPDATE journal SET body = ?, digest = ? WHERE number = ?"
    connection.execute(sets, (body, digest, number))
    connection.commit()
    connection.close()


def lowered(body):
    data = json.loads(body)
    data["after"] = {**data["after"], "composed": {"mu_squared": (1e-9).hex(), "additions": 1}}
    return canonical(data)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("followed_by", ["note", "refused"])
def test_a_lowered_sum_followed_by_another_row_is_noticed(ledger, again, followed_by):
    ledger.reserve(charge(0.1))
    if followed_by == "note":
        ledger.note("an evaluation")
    else:
        with pytest.raises(Exception, match="refuses"):
            ledger.reserve(charge(5.0))
    change(ledger, 2, lowered, again)
    for use in (
        ledger.left,
        ledger.spent,
        lambda: ledger.reserve(charge(0.1)),
        lambda: ledger.remaining_after(charge(0.1)),
        ledger.rows,
        lambda: list(ledger.export()),
    ):
        with pytest.raises(LedgerError, match=r"row [23] does not fit the chain"):
            use()
    assert ledger.faults() != []


def test_a_changed_frame_of_an_earlier_row_is_noticed(tmp_path):
    ledger = Ledger.create(
        tmp_path / "labels.ledger", epsilon=1.0, delta=1e-5, adjacency=REPLACE_LABEL
    )
    for _ in range(3):
        ledger.reserve(charge(0.05, REPLACE_LABEL, "a"))
    change(ledger, 2, lambda body: body.replace('"frame":"a"', '"frame":"b"'), again=True)
    with pytest.raises(LedgerError, match="does not fit the chain"):
        ledger.reserve(charge(0.05, REPLACE_LABEL, "b"))


@pytest.mark.parametrize("bytes_", [b"\xff\xfe broken", b"", b"{", b"\x00" * 50])
def test_damaged_text_is_a_clear_error(ledger, bytes_):
    ledger.reserve(charge())
    connection = sqlite3.connect(ledger.journal.path)
    connection.execute("DROP TRIGGER no_change")
    sets = "UPDATE journal SET body = CAST(? AS TEXT) WHERE number = 2"
    connection.execute(sets, (bytes_,))
    connection.commit()
    connection.close()
    for use in (ledger.left, ledger.rows, lambda: ledger.reserve(charge())):
        with pytest.raises(LedgerError, match=r"row 2 .*the ledger is damaged") as caught:
            use()
        assert "broken" not in str(caught.value)


def test_an_export_is_one_json_object(ledger):
    ledger.reserve(charge(), what="a run")
    found = json.loads(b"".join(ledger.export()))
    assert found["ledger"] == "people"
    assert [row["kind"] for row in found["rows"]] == ["created", "reserved"]
    assert found["rows"][1]["body"]["what"] == "a run"
