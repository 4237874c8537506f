"""Processes that spend one ledger and die: run by test_ledger_crash in a process of its own.

python ledger_crash.py kill FOLDER RUNS SEED       one run after another, each killed somewhere
python ledger_crash.py spend FOLDER PROCESSES EACH all at once
python ledger_crash.py full FOLDER BYTES           no file may grow beyond so many bytes
"""

import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dpcore import REPLACE_ONE, DpcoreError, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.ledger import Charge
from dpcore.ledger.filters import BudgetExceededError
from dpcore.published.files import write_files

from builders import price_label_mean
from doubles import table


def plan(epsilon=0.1):
    return price_label_mean(epsilon=epsilon)


def in_child(work):
    """Fork, work, leave without any of the parent's clean-up; the child's id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = work()
    finally:
        os._exit(code)


def run(folder, ledger, planned, number):
    """What `dpcore run` does, with a mark at the moment the records are opened."""
    try:
        reservation = planned.reserve(ledger, f"run {number}")
    except BudgetExceededError:
        return 4
    with (folder / "opened").open("a") as marks:
        marks.write(f"{reservation.recorded.digest}\n")
    outcome = planned.run(table(), reservation=reservation)
    published = json.dumps(outcome.guarantee.to_dict()).encode()
    write_files(folder / "runs" / f"{number}" / "public", {"guarantee.json": published})
    return 0


def kill(folder, runs, seed):
    ledger, planned = Ledger.open(folder / "spent.ledger"), plan()
    (folder / "runs").mkdir()
    chosen, ended, longest = random.Random(seed), {}, 0.0
    for number in range(runs):
        child = in_child(lambda number=number: run(folder, ledger, planned, number))
        if number % 10 == 0:  # one that ends by itself says how long the others may take now
            began = time.monotonic()
            os.waitpid(child, 0)
            longest = 1.2 * (time.monotonic() - began)
            continue
        time.sleep(chosen.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        how = "killed" if os.WIFSIGNALED(status) else str(os.WEXITSTATUS(status))
        ended[how] = ended.get(how, 0) + 1
    print(json.dumps(ended))


def spend(folder, processes, each):
    ledger = Ledger.open(folder / "spent.ledger")
    charge = Charge.of(GaussianEvent(mu=0.06, adjacency=REPLACE_ONE))

    def work(number):
        with (folder / f"spent-{number}").open("w") as mine:
            for _ in range(each):
                try:
                    mine.write(f"{ledger.reserve(charge).recorded.digest}\n")
                except BudgetExceededError:
                    mine.write("refused\n")
        return 0

    children = [in_child(lambda n=n: work(n)) for n in range(processes)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(max(map(abs, codes)))


def full(folder, size):
    ledger, planned = Ledger.open(folder / "spent.ledger"), plan()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    for number in range(10_000):
        try:
            run(folder, ledger, planned, number)
        except DpcoreError as error:
            print(error)
            return
        except OSError:  # the mark or the run folder, not the ledger
            continue


if __name__ == "__main__":
    command, where, *numbers = sys.argv[1:]
    {"kill": kill, "spend": spend, "full": full}[command](Path(where), *map(int, numbers))
