"""Interrupts: heard wherever they come, and no library drops one while it imports another."""

import subprocess
import sys

import pytest

from dpcore.published.files import reported_failures

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no timers of signals")

DROPPED = {
    "an import that drops it": """
try:
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(1000))
except KeyboardInterrupt:
    print("dropped")
""",
    "a finalizer": """
class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(1000))
Finalized()
""",
    "a callback of a weak reference": """
import weakref
class Referred: pass
referred = Referred()
weakref.finalize(referred, lambda: (os.kill(os.getpid(), signal.SIGINT), sum(range(1000))))
del referred
""",
}
MAIN = """
import signal
from dpcore.console import interrupt
for which in (signal.SIGINT, signal.SIGALRM):
    signal.signal(which, interrupt)
try:
    import module
    while True:
        sum(range(1000))
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.parametrize("where", DROPPED)
def test_an_interrupt_where_python_drops_it_is_heard_afterwards(tmp_path, where):
    (tmp_path / "module.py").write_text(f"import os, signal\n{DROPPED[where]}")
    done = subprocess.run(
        [sys.executable, "-c", MAIN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("heard\n", "")


def interrupted(place, charges):
    """What an interrupt says in the end."""
    try:
        with reported_failures(place, sealed=False) as spent:
            spent.extend(charges)
            raise KeyboardInterrupt
    except KeyboardInterrupt as report:
        return report


def test_an_interrupt_once_the_folder_is_there_says_so(tmp_path):
    none = tmp_path / "none"
    for place, charges, said in (
        (tmp_path, ["one"], f"published in {tmp_path}"),
        (tmp_path, [], f"published in {tmp_path}"),
        (none, ["one"], "spent, not published"),
        (none, [], ""),
    ):
        assert str(interrupted(place, charges)) == said


NO_PANDAS = """
import sys
import pyarrow
from pyarrow import csv, parquet

asked = []
class LastStep:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            asked.append(name)

table = csv.read_csv(pyarrow.BufferReader(CONTENT))
table = table.set_column(3, "when", table["when"].cast(pyarrow.timestamp("ns")))
table = table.set_column(4, "cost", table["cost"].cast(pyarrow.decimal128(9, 2)))
table = table.set_column(2, "region", table["region"].dictionary_encode())
parquet.write_table(table, "people.parquet")
sys.meta_path.insert(0, LastStep())
import datetime
import dpcore
from dpcore.domain.columns import Dates
from dpcore.transcript.replay_process import HERE

day = Dates.between(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1))
domain = dpcore.Domain(columns={
    "age": dpcore.Range(0, 100), "paid": dpcore.Range(0, 1), "when": day, "day": day,
    "region": dpcore.Categories(("n", "s")), "cost": dpcore.Range(0, 100)})
budget = dpcore.PrivacyBudget(epsilon=1e6, delta=1e-6)
files = [dpcore.read_parquet("people.parquet")]
if len(CONTENT) > 2**20:
    open("people.csv", "wb").write(CONTENT)
    open("comma.csv", "wb").write(CONTENT.replace(b",", b";").replace(b".", b","))
    files.append(dpcore.read_csv("people.csv"))
    files.append(dpcore.read_csv("comma.csv", delimiter=";", decimal=","))
for records in (*files, table):
    session = dpcore.Session(budget, domain, records, on_invalid="project", replaying=HERE)
    for name in ("age", "paid", "when", "day", "cost"):
        session.mean(name, epsilon=1)
    session.histogram("region", epsilon=1)
print(asked)
"""


@pytest.mark.parametrize(
    "records", [200, pytest.param(30_000, marks=pytest.mark.slow, id="large files")]
)
def test_records_are_read_without_a_look_for_pandas(tmp_path, records):
    """Pyarrow drops an interrupt while it imports pandas, and that import takes half a second."""
    pytest.importorskip("pyarrow")
    rows = "".join(
        f"{i % 90},{'true' if i % 2 else 'false'},{'ns'[i % 2]},2020-03-01T10:00:00,"
        f"{'' if i % 7 == 0 else i % 100 / 4},2020-03-02\n"
        for i in range(records)
    )
    content = f"age,paid,region,when,cost,day\n{rows}".encode()
    code = f"CONTENT = open('content', 'rb').read()\n{NO_PANDAS}"
    (tmp_path / "content").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
