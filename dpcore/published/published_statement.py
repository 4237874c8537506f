"""What `guarantee.json` of a run folder says beyond what follows from its locked plan."""

from typing import Annotated

import msgspec

from dpcore.errors import LONGEST_MESSAGE, ReplayError
from dpcore.guarantee import Guarantee, Recorded
from dpcore.source import HANDED_OVER

_Text = Annotated[str, msgspec.Meta(max_length=LONGEST_MESSAGE, pattern=r"\A[^\x00-\x1f\x7f]*\Z")]
_Texts = Annotated[list[_Text], msgspec.Meta(max_length=100)]


class PublishedStatement(msgspec.Struct, frozen=True):
    """What only the run itself can have added to the guarantee of its plan, in either format.

    It may weaken the guarantee, and never strengthens it. Who replayed it, and the entry of a
    ledger, are taken as they stand: the ledger itself can confirm the entry.
    """

    premises: list[str] = []
    door: _Texts = []
    distributions: Annotated[dict[_Text, _Text], msgspec.Meta(max_length=100)] = {}
    replayed: _Text = ""
    voided: _Text = msgspec.field(name="not private", default="")
    # Integers stay integers: an entry of a ledger counts runs.
    ledger: dict[str, int | float | _Text | _Texts] | None = None

    def applied(self, guarantee: Guarantee) -> Guarantee:
        """The plan's guarantee with all of it.

        Raises:
            ReplayError: the entry of a ledger is none.
        """
        # In format 2 the one premise of a door stands among the plan's.
        handed_over = [HANDED_OVER] if HANDED_OVER in self.premises and not self.door else []
        if self.ledger is not None:
            try:
                msgspec.convert(self.ledger, type=Recorded)
            except msgspec.ValidationError:
                text = "guarantee.json: damaged (what it says of a ledger)"
                raise ReplayError(text) from None
        plan = guarantee.provenance
        return guarantee.with_provenance(
            distributions=dict(sorted({**self.distributions, **plan.distributions}.items())),
            door_premises=(*handed_over, *self.door),
            replayed=self.replayed,
            recorded=None if self.ledger is None else Recorded.of(self.ledger),
            voided=self.voided or plan.voided,
        )
