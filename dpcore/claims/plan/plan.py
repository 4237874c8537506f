"""Plan: a priced run. It states its guarantee before any record is opened, and then keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dpcore.bound import Components
from dpcore.claims.plan.request import Request
from dpcore.claims.plan.schedule import Schedule
from dpcore.guarantee import Guarantee, Payer
from dpcore.randomness import PublicRandomness, SecretRandomness
from dpcore.shown import Drawn

if TYPE_CHECKING:
    from dpcore.claims.accounting.certainty import Curve
    from dpcore.claims.plan.cost_statement import Limits, Resources
    from dpcore.domain.domain import Table
    from dpcore.ledger.book import Ledger, Reservation
    from dpcore.ledger.charge import Charge
    from dpcore.private.engines.base import Engine
    from dpcore.private.function_answers import Predictor
    from dpcore.private.outcome import Outcome
    from dpcore.private.release_context import ReleaseBoundary
    from dpcore.source import DeclaredSource, Source
    from dpcore.transcript.replay_process import Replayer


@attrs.frozen(kw_only=True, eq=False)
class Plan(Drawn):
    """A run with its price.

    Args:
        schedule: What will be done.
        guarantee: What the run will be entitled to say.
        randomness: The public randomness the plan was made at; None if every run draws new ones,
            because a bound holds with a probability over them.
        components: What it is made of, and on whose code that rests.
        resources, limits: What a run needs of the machine, about, and what it may need;
            `dpcore.price` attaches both.
    """

    schedule: Schedule
    guarantee: Guarantee
    randomness: PublicRandomness | None
    components: Components = attrs.field(repr=False)
    resources: Resources = attrs.field(default=None)
    limits: Limits = attrs.field(default=None)
    __str__ = Drawn.text

    def curve(self) -> Curve:
        """Return upper ends of epsilon over delta: the cost of the whole run, at any delta.

        Raises:
            ReplayError: a lock states less than its noise costs at least.
            NoClaimError: no epsilon can be stated at any delta.
        """
        from dpcore.claims.plan.privacy_curve import certified

        return certified(self.schedule, self.guarantee)

    @property
    def request(self) -> Request:
        """The request that was priced: domain, budget, adjacency and releases."""
        return self.schedule.request

    @property
    def most_queries(self) -> int:
        """The largest number of answers that a run may publish."""
        releases = self.schedule.releases
        return sum(
            planned_query.query.at_most
            for scheduled in releases
            for planned_query in scheduled.queries.values()
        )

    def run(
        self,
        table: Table | Source | DeclaredSource,
        *,
        engine: Engine | None = None,
        secret: SecretRandomness | None = None,
        release_through: ReleaseBoundary | None = None,
        progress: Callable[[], None] | None = None,
        points: Mapping[str, Table] | None = None,
        reservation: Payer | None = None,
        replaying: Replayer | None = None,
        code: Iterable[Any] = (),
    ) -> Outcome:
        """Open the records and release.

        Nothing is returned before the public part, on copies from before any record was opened,
        gave the same asks and the same models from the answers only, byte for byte.

        Args:
            table: Columns by name, in the file's units; or a source, or what `read_csv` returns,
                whose records are held in blocks on disk where every learner can read these.
            engine: Holds the records of a source; a local one for this call if None. It is the
                caller's to close.
            secret: Fresh secure randomness if None; known ones void the guarantee.
            release_through: The mechanism's own if None; anything else voids the guarantee.
            progress: Called after every answer.
            points: By the name of each function release, public points to predict at: chosen
                without looking at the records.
            reservation: What `reserve` spent for this run. The guarantee is committed to its
                ledger before anything is returned.
            replaying: Where that replay happens: in a process of its own, which ends with this
                call, if None; `HERE`, which starts none; or a `CleanProcess`, which serves several
                calls. The guarantee says where.
            code: What records or engine were named by, where these do not show it: the guarantee
                lists its distributions too.

        Raises:
            SourceError: the table does not fit the domain: unspent, where types show it.
            ResourceError: its disk has not enough room for a source's records.
            RequestError: a function release has no points, or more than are paid for; or a learner
                needs all records in one memory, and the engine holds them in several.
            ContractError: the reservation is not for this plan, has been used, or cannot be: known
                randomness, or a release boundary of no privacy.
            ReleaseError: a private function failed, or the answers only give something else; of a
                sealed plan, anything failed once the records were opened.
            LedgerError: the guarantee could not be committed; nothing is released.
        """
        # A plan knows no record: what opens them is imported when one is run.
        from dpcore.private.run import run

        return run(
            self,
            table,
            engine=engine,
            secret=secret,
            release_through=release_through,
            progress=progress,
            points=points,
            reservation=reservation,
            replaying=replaying,
            code=code,
        )

    def open(
        self,
        table: Table | Source | DeclaredSource,
        *,
        secret: SecretRandomness | None = None,
        reservation: Payer | None = None,
    ) -> Predictor:
        """Open the records and serve the plan's only release, a function, through its oracle.

        Every call is a release of its own: two oracles on the same records add up.

        Args:
            table: As for `run`.
            secret: Known randomness, for a rehearsal; an oracle for use draws its own.
            reservation: As for `run`; it pays for all answers of this oracle.

        Raises:
            ContractError: the plan's release is not one function, or secure randomness is given.
            SourceError: the table does not fit the domain.
            ReleaseError: a private function failed.
        """
        from dpcore.private.run import open_function

        return open_function(self, table, secret=secret, reservation=reservation)

    def charge(self) -> Charge:
        """Return the cost of a run of this plan, for a ledger.

        Raises:
            ContractError: the plan guarantees nothing.
        """
        # Imported here, as in `reserve`: a run without a ledger needs none of it.
        from dpcore.ledger.charging import charge

        return charge(self)

    def reserve(
        self, ledger: Ledger, what: str = "", uncovered: tuple[str, ...] = ()
    ) -> Reservation:
        """Spend this plan's whole charge, before any record is opened.

        Args:
            ledger: The ledger that pays.
            what: What the run is for, in a few public words.
            uncovered: Looks at the records that the run will take and that nothing accounts for.

        Raises:
            BudgetExceededError: the ledger refuses.
            LedgerError: it cannot be written.
        """
        from dpcore.ledger.charging import reserve

        return reserve(self, ledger, what, uncovered)
