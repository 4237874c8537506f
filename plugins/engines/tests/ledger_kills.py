"""A process that spends from a ledger on PostgreSQL until it is refused or killed.

python ledger_kills.py FOLDER NUMBER

Every reservation is noted in FOLDER/spent-NUMBER once the ledger has confirmed it, and put on disk.
"""

import os
import sys
import time
from pathlib import Path

from dpcore import REPLACE_ONE, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.errors import LedgerError
from dpcore.ledger import Charge
from dpcore.ledger.filters import BudgetExceededError

PLACE = "study@postgresql"
SMALL = Charge.of(GaussianEvent(mu=2.0**-5, adjacency=REPLACE_ONE))


def spend(folder, number):
    """Reserve again and again; a server that is down is tried again a moment later."""
    with (folder / f"spent-{number}").open("a") as notes:
        while True:
            try:
                ledger = Ledger.open(PLACE)
                while True:
                    digest = ledger.reserve(SMALL, f"by {number}").recorded.digest
                    notes.write(f"{digest}\n")
                    notes.flush()
                    os.fsync(notes.fileno())
            except BudgetExceededError:
                return
            except LedgerError as error:
                if "cannot be used" not in str(error):
                    (folder / f"fault-{number}").write_text(str(error))
                    return
                time.sleep(0.2)


if __name__ == "__main__":
    spend(Path(sys.argv[1]), int(sys.argv[2]))
