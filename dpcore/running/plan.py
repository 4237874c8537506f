"""Plan: a priced run. It states its guarantee before any record is opened, and then keeps it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import UNFRAMED
from dpcore.checks import describe_type
from dpcore.domain.domain import Table
from dpcore.engines.base import Engine
from dpcore.engines.local import LocalEngine
from dpcore.errors import ContractError, RequestError, below, map_below, need
from dpcore.guarantee import Guarantee, Status
from dpcore.isolate.sealed_output import run_silenced
from dpcore.learner import Published
from dpcore.notebook_view import Sheet, Shown
from dpcore.plan.ask import failure_over_coins
from dpcore.plan.cost_statement import Resources, require_disk
from dpcore.plan.request import RELEASE, Request
from dpcore.randomness import PublicCoins, SecretCoins
from dpcore.records.records import Records
from dpcore.records.source import Source
from dpcore.registry.distributions import distributions_of
from dpcore.running.opening import admit, premises_of
from dpcore.running.outcome import Outcome
from dpcore.running.public_inputs import require_apart
from dpcore.running.release_context import Conversation, Door, do_nothing, through_mechanism
from dpcore.running.replay_process import CleanProcess, Replayer
from dpcore.running.runtime import open_records, release
from dpcore.running.schedule import Handover, Schedule
from dpcore.siblings import sibling
from dpcore.sources.opening import Unopened

if TYPE_CHECKING:
    from dpcore.accounting.certainty import Curve
    from dpcore.ledger.book import Ledger, Reservation
    from dpcore.ledger.charge import Charge
    from dpcore.running.function_release import Predictor, Serving


@attrs.frozen(kw_only=True, eq=False)
class Plan(Shown):
    """A run with its price.

    Args:
        schedule: What will be done.
        guarantee: What the run will be entitled to say.
        coins: The public coins the plan was made at; None if every run draws new ones, because a
            bound holds with a probability over them.
        resources: What a run needs of the machine, about.
    """

    schedule: Schedule
    guarantee: Guarantee
    coins: PublicCoins | None
    resources: Resources = attrs.field(factory=Resources)
    __str__ = Shown.text

    def sheet(self) -> Sheet:
        """The guarantee in short, and every query with its noise."""
        from dpcore.running.notebook_views import plan_sheet

        return plan_sheet(self.schedule, self.guarantee)

    def curve(self) -> Curve:
        """Upper ends of epsilon over delta: what the whole run may cost, at any delta.

        Raises:
            ReplayError: a lock states less than its noise costs at least.
            NoClaimError: no epsilon can be stated at any delta.
        """
        from dpcore.running.privacy_curve import certified

        return certified(self.schedule, self.guarantee)

    def plot(self, axes: Any = None) -> Any:
        """Draw the certified curve, and what an attacker recognises at most; needs matplotlib.

        Args:
            axes: Two of matplotlib's; those of a new figure if None.

        Returns:
            Both axes.

        Raises:
            ImportError: dpcore-report or matplotlib is not installed.
        """
        # matplotlib is imported here alone, so that a plan needs no plotting library.
        curves = sibling("report", "plots.curves", "Plan.plot")
        curve_axes, trade_off_axes = curves.axes_or_new(axes, 2)
        curve, guarantee = self.curve(), self.guarantee
        curves.draw_curve(curve_axes, curve, guarantee.epsilon, guarantee.delta)
        curves.draw_trade_off(trade_off_axes, curve)
        return curve_axes, trade_off_axes

    @property
    def request(self) -> Request:
        """The request that was priced: domain, budget, adjacency and releases."""
        return self.schedule.request

    @property
    def most_asks(self) -> int:
        """The largest number of answers that a run may publish."""
        releases = self.schedule.releases
        return sum(ask.query.at_most for scheduled in releases for ask in scheduled.asks.values())

    def run(
        self,
        table: Table | Source | Unopened,
        *,
        engine: Engine | None = None,
        secret: SecretCoins | None = None,
        door: Door = through_mechanism,
        progress: Callable[[], None] = do_nothing,
        points: Mapping[str, Table] | None = None,
        reservation: Reservation | None = None,
        replaying: Replayer | None = None,
        code: Iterable[Any] = (),
    ) -> Outcome:
        """Open the records and release.

        Nothing is returned before the public part, on copies from before any record was opened,
        gave the same asks and the same models from the answers alone, byte for byte.

        Args:
            table: Columns by name, in the file's units; or a source, or what `read_csv` returns,
                whose records are held in blocks on disk where every learner can read these.
            engine: Holds the records of a source; a local one for this call if None. It is the
                caller's to close.
            secret: Fresh secure coins if None; known ones void the guarantee.
            door: Anything but the mechanism's own voids the guarantee.
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
                coins, or a door of no privacy.
            ReleaseError: a private function failed, or the answers alone give something else; of a
                sealed plan, anything failed once the records were opened.
            LedgerError: the guarantee could not be committed; nothing is released.
        """
        # What public facts and types refuse is refused first: after `begin` the budget is spent.
        encoded = self.encode_points({} if points is None else points)
        records, code = admit(self.request, table), (*code, *_location_of(table))
        require_apart(self.request.domain, records, self.request.public)
        if engine is not None:
            self.require_fit(engine, lambda: records)
        # A reservation that is not begun serves again, once there is room.
        if isinstance(records, Source) and (engine is None or engine.is_local):
            spool, needs = None if engine is None else engine.spool, self.resources
            require_disk(spool, needs.disk, needs.memory, self.request.memory)
        secret = SecretCoins.draw() if secret is None else secret
        if reservation is not None:
            self._begin(reservation, secret, door)
        # Secret coins serve one run. Noise that is drawn twice from one stream could be subtracted.
        secret.begin()
        sealed = self.request.sealed
        step = do_nothing if sealed else progress  # of a sealed run no more is told than its end
        # An engine of the caller's stays open; one that is made here is closed, and its spools go.
        with (
            LocalEngine() if engine is None else contextlib.nullcontext(engine) as holder,
            CleanProcess() if replaying is None else contextlib.nullcontext(replaying) as replayer,
        ):
            reading = partial(self._release_records, records, holder, secret, door, code)
            work = partial(reading, step, encoded, reservation, replayer)
            return run_silenced(work) if sealed else work()

    def require_fit(
        self, engine: Engine, records: Callable[[], Table | Source] | None = None
    ) -> None:
        """Refuse an engine that cannot serve this plan, or add where those records are, unspent.

        Raises:
            RequestError: a learner needs all records in one memory, which the engine lacks; it is
                not ready; it tells of a run that is sealed; or it cannot add what is asked.
        """
        is_engine, way = isinstance(engine, Engine), "LocalEngine() or one of dpcore_engines"
        need(is_engine, "a run", f"an engine: {way}", "engine", describe_type(engine))
        for number, entry in enumerate(self.schedule.releases):
            if entry.release.of is not None:
                continue  # the hold-out is in this memory
            if not (entry.reads.in_blocks or engine.one_memory):
                # The location makes the error point at the learner's line of the spec.
                with below("releases", number, "learner"):
                    raise RequestError(
                        f"{entry.name}: {type(entry.learner).__name__} reads {entry.reads.value}, "
                        f"which needs all records in one memory, and {type(engine).__name__} holds "
                        f"them in several: use the local engine, or a learner that reads sums"
                    )
        need(
            not engine.tells or not self.request.sealed,
            RequestError,
            "a sealed run shows no progress: make the engine without",
        )
        engine.ready()
        if records is not None:
            from dpcore.running.workload import workload_of

            engine.accept(lambda: workload_of(self.schedule, records(), self.coins))

    def _release_records(
        self,
        table: Table | Source,
        engine: Engine,
        secret: SecretCoins,
        door: Door,
        code: tuple[Any, ...],
        progress: Callable[[], None],
        encoded: Mapping[str, NDArray[np.float64] | None],
        reservation: Reservation | None,
        replaying: Replayer,
    ) -> Outcome:
        """PRIVATE inside: from the records to what is published."""
        # A bound that fails with a probability over the public coins needs new ones for each run.
        coins = PublicCoins.draw() if self.coins is None else self.coins.again()
        # It starts before a record is opened, and compares before anything leaves this block.
        with replaying.of(self.schedule.releases, coins.again()) as replay:
            opened = open_records(self.schedule, table, secret, engine)
            answers, ends = release(
                self.schedule, opened.train, coins, secret, door, progress, encoded, opened
            )
            retold = replay(answers, ends)
        guarantee = self._guarantee(secret, table, (type(engine), *code), retold.place)
        guarantee = guarantee.resting_on(*engine.premises)
        if door is not through_mechanism:
            # Fail closed: an outcome keeps its guarantee only through the one private door.
            guarantee = guarantee.void("the answers did not come from the mechanism")
        names = [scheduled.name for scheduled in self.schedule.releases]
        answers_by_release = dict(zip(names, answers, strict=True))
        values = {name: tuple(a.value for a in group) for name, group in answers_by_release.items()}
        # The paid look comes last: it may use the models, and no model may use it.
        if self.schedule.look and (private_look := self.request.look) is not None:
            from dpcore.running.paid_evaluation import look

            asks, domain = self.schedule.look, self.request.domain
            # Other objects than the published ones: these see the hold-out, and are dropped.
            look_models = self.rebuild(values, coins.again())
            answers_by_release[RELEASE] = tuple(
                look(private_look, asks, look_models, opened, domain, secret, len(names), door)
            )
        return Outcome(
            models=dict(zip(names, retold.models, strict=True)),
            arrays=dict(zip(names, retold.arrays, strict=True)),
            descriptions=dict(zip(names, retold.descriptions, strict=True)),
            answers=answers_by_release,
            guarantee=guarantee if reservation is None else reservation.commit(guarantee),
            coins=coins,
            opened=opened,
            note=retold.note,
        )

    def open(
        self,
        table: Table | Source | Unopened,
        *,
        secret: SecretCoins | None = None,
        reservation: Reservation | None = None,
    ) -> Predictor:
        """Open the records and serve the plan's only release, a function, through its oracle.

        Every call is a release of its own: two oracles on the same records add up.

        Args:
            table: As for `run`.
            secret: Known coins, for a rehearsal; an oracle for use draws its own.
            reservation: As for `run`; it pays for all answers of this oracle.

        Raises:
            ContractError: the plan's release is not one function, or secure coins are given.
            SourceError: the table does not fit the domain.
            ReleaseError: a private function failed.
        """
        from dpcore.running.function_release import Serving

        # An oracle's answers depend on later questions: there is no transcript to replay yet.
        serving, *further_releases = self.schedule.releases
        if further_releases or not isinstance(serving, Serving):
            raise ContractError("only a plan of one function release can be opened; run it")
        # Secure coins that the caller holds could be used for a second oracle, and the difference
        # of two answers with equal noise is exact.
        need(
            secret is None or not secret.secure,
            ContractError,
            "an oracle draws secret coins of its own: give none",
        )
        records = admit(self.request, table)
        secret = SecretCoins.draw() if secret is None else secret
        if reservation is not None:
            self._begin(reservation, secret, through_mechanism)
        work = partial(
            self._open_oracle, serving, records, secret, reservation, _location_of(table)
        )
        return run_silenced(work) if self.request.sealed else work()

    def _open_oracle(
        self,
        serving: Serving,
        table: Table | Source,
        secret: SecretCoins,
        reservation: Reservation | None,
        code: tuple[Any, ...],
    ) -> Predictor:
        """PRIVATE inside: from the records to an oracle."""
        from dpcore.running.function_release import Predictor

        coins = PublicCoins.draw() if self.coins is None else self.coins.again()
        opened = open_records(self.schedule, table, secret)
        # Only the learners' part reaches the oracle; a hold-out is dropped here.
        records = cast(Records, opened.train)  # a function's records are in memory
        conversation = Conversation(number=0, records=records, coins=coins, secret=secret)
        oracle = serving.oracle(serving.function(conversation), conversation)
        replayed = "nowhere: an oracle answers later questions"
        guarantee = self._guarantee(secret, table, code, replayed)
        return Predictor(
            domain=serving.part,
            oracle=oracle,
            guarantee=guarantee if reservation is None else reservation.commit(guarantee),
        )

    def charge(self) -> Charge:
        """Everything a run of this plan may cost, for a ledger.

        Raises:
            ContractError: the plan guarantees nothing.
        """
        need(
            self.guarantee.status is not Status.NONE,
            ContractError,
            "a plan without a guarantee cannot be charged to a ledger",
        )
        # Imported here, as in other methods: a run without a ledger needs none of it.
        from dpcore.ledger.charge import Charge

        asks = self.schedule.asks
        events = tuple((ask.event(), ask.charged) for ask in asks)
        domain = self.request.domain
        # Two charges against one ledger add up only if neighbours mean the same in both. By adding
        # or replacing records they do; other relations need the declared domain as their frame.
        declared = domain.people or attrs.evolve(domain, exact=None, limit=None, sampled=None)
        needs_frame = any(event.adjacency not in UNFRAMED for event, _ in events)
        return Charge(
            events=events,
            failures=failure_over_coins(asks),
            frame=repr(declared) if needs_frame else "",
            assumptions=tuple(a.name for a in self.guarantee.assumptions),
        )

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
        is_ledger, way = hasattr(ledger, "reserve"), "a ledger: Ledger.open(NAME)"
        need(is_ledger, "a run", way, "ledger", describe_type(ledger))
        return ledger.reserve(self.charge(), what, uncovered)

    def _begin(self, reservation: Reservation, secret: SecretCoins, door: Door) -> None:
        # A ledger's entries are claims about real releases, and a rehearsal is none.
        need(
            secret.secure and door is through_mechanism,
            ContractError,
            "known coins or another door guarantee nothing a ledger could hold",
        )
        reservation.begin(self.charge())

    def _guarantee(
        self, secret: SecretCoins, table: Table | Source, code: tuple[Any, ...], replayed: str
    ) -> Guarantee:
        """The plan's, on the premises of the door through which the records came."""
        # A table by its class: it holds records.
        doors = distributions_of((type(table), *code), self.request.registry)
        moments = [rule.premise(name) for name, rule in self.request.domain.dates.items()]
        guarantee = attrs.evolve(self.guarantee, replayed=replayed)
        guarantee = guarantee.resting_on(*premises_of(table), *moments, distributions=doors)
        return guarantee if secret.secure else guarantee.void("secret coins are known")

    def encode_points(self, tables: Mapping[str, Table]) -> dict[str, NDArray[np.float64] | None]:
        """Encoded points of every function release; needs no record.

        Raises:
            RequestError: they are not given for exactly these, or are too many.
            SourceError: a column is missing.
        """
        # A misspelt release name must not pass silently: the run would end without its predictions
        # after the budget is spent.
        if unknown := sorted({*tables} - {scheduled.name for scheduled in self.schedule.releases}):
            raise RequestError(f"points came for {unknown[0]!r}, which is no release of the plan")
        releases = enumerate(self.schedule.releases)
        encoded = map_below(lambda scheduled: scheduled.points(tables), releases, "releases")
        return {self.schedule.releases[number].name: points for number, points in encoded.items()}

    def rebuild(
        self, answers: Mapping[str, tuple[NDArray[Any], ...]], coins: PublicCoins
    ) -> dict[str, Published]:
        """Rebuild the models that released answers determine, by release name.

        Raises:
            ReplayError: the answers do not fit the plan.
        """
        models: dict[str, Published] = {}
        handover = Handover(self.schedule.releases)
        for scheduled in self.schedule.releases:
            values, inputs = answers.get(scheduled.name, ()), handover.inputs(scheduled)
            model = models[scheduled.name] = scheduled.rebuild(coins, values, inputs)
            handover.keep(scheduled.name, model)
        return models


def _location_of(table: Table | Source | Unopened) -> tuple[Any, ...]:
    """What named the records, if that is known here: its source may be of another distribution."""
    return (table.location,) if isinstance(table, Unopened) else ()
