"""The ledger: one budget for everything that is ever released about the same records."""

from typing import TYPE_CHECKING

from dpcore.siblings import lazy_names

if TYPE_CHECKING:
    from dpcore.ledger.book import Ledger as Ledger, Reservation as Reservation
    from dpcore.ledger.charge import Charge as Charge
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Charge": "ledger.charge",
            "Ledger": "ledger.book",
            "Reservation": "ledger.book",
        },
    )
