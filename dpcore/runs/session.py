"""Session: releases one after the other in Python, each paid for out of one budget.

What is asked next may depend on what was answered before: costs are added up by a filter (a
`Ledger`, or the same sums in memory), which refuses what would exceed the budget, before a record
is read. Nothing is written but by the ledger.
"""

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, cast

import attrs

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.checks import describe_type, need_positive
from dpcore.claims.accounting.budget import PrivacyBudget
from dpcore.claims.events.relation_text import relation_of
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.request import PublicInput, Release
from dpcore.domain.domain import Domain, Table
from dpcore.errors import ContractError, below, need
from dpcore.guarantee import Guarantee
from dpcore.learner import AnyLearner, Model, Published, describe_kinds, promises
from dpcore.ledger.book import FAILURES_FRACTION, TILTED_FRACTION, Ledger
from dpcore.ledger.charge import Charge
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.gaussian_cover import settled
from dpcore.ledger.remaining_budget import shown_down
from dpcore.ledger.total import Spent, Total
from dpcore.mechanism import AnyMechanism
from dpcore.models.description import Description
from dpcore.private.admission import require_apart
from dpcore.private.core_dumps import forbid_core_dumps
from dpcore.registry.registry import Registry
from dpcore.runs.price import price
from dpcore.runs.session_arguments import (
    Left,
    Question,
    admitted,
    at_arguments,
    make_learner,
    only_table,
    question_method,
    require_arguments,
    require_epsilon,
    require_learner,
)
from dpcore.shown import Shown
from dpcore.single_use import SingleUse
from dpcore.source import Source
from dpcore.sources.opening import Unopened
from dpcore.sources.public_inputs import read_public
from dpcore.transcript.isolated_copies import Before
from dpcore.transcript.replay_process import CleanProcess, Replayer

Mechanisms = AnyMechanism | Mapping[str, AnyMechanism]


def _starts(budget: Ledger | PrivacyBudget, adjacency: Adjacency) -> list[Spent]:
    """Sums from which nothing is spent; one of them for good once the first release is charged.

    Gaussians add up exactly, with whatever a Gaussian covers (`dpcore.ledger.gaussian_cover`); in
    the place of that, Rényi divergences do, or pure epsilons. Such filters may not share one delta:
    the first release, which is chosen before any answer, decides which of them the session has.
    """
    if isinstance(budget, Ledger):
        return [budget.total.start()]
    of_notion = partial(Total, epsilon=budget.epsilon, delta=budget.delta, adjacency=adjacency)
    # At delta = 0 only pure epsilons add up.
    if budget.delta == 0:
        return [of_notion(notion="basic").start()]
    failures, tilted = budget.delta * FAILURES_FRACTION, budget.delta * TILTED_FRACTION
    # Without the sum of pure epsilons, pure releases are covered, too.
    exact = of_notion(notion="gaussian", failures=failures, tilted=tilted).start()
    return [attrs.evolve(exact, pure=None), of_notion(notion="renyi").start()]


@attrs.frozen(kw_only=True, eq=False)
class PaidRelease(Shown):
    """One release of a session, and what it cost.

    Args:
        name: What was asked, with its number.
        published: The model, the tables or the object of another class.
        guarantee: Of this release by itself; together they cost what the session says.
        left: What was left after it, in words.
        description: What it hands over to be shown.
    """

    name: str
    published: Published
    guarantee: Guarantee
    left: str
    description: Description = attrs.field(factory=Description)


class Session(SingleUse, Shown):
    """A table, a budget, and everything that is asked of the one out of the other.

    Args:
        budget: A ledger, which outlives the session, or a budget that it keeps in memory.
        domain: Declared public facts, never taken from the table.
        table: The records: columns by name, in their own units. A data frame serves, and so does
            what `read_csv` and its siblings return: such a file is read once, here.
        adjacency: Which tables are neighbours, or the name of that relation as in a spec; a
            ledger's own, else `ADD_REMOVE` where the number
            of records is private and `REPLACE_ONE` where it is public; of persons, where the domain
            declares them.
        on_invalid: `project` maps a record that does not fit into the domain; `refuse` stops: of a
            table in memory at once, before anything is spent.
        registry: Where learners are looked up by name; the default one if None.
        expected: A public estimate of a private number of records, for the memory that they need.
        public: Records that are about no one in the table, by name: what learners may start from.
        accept_delta: Whether a delta of 0.5 or more is meant.
        replaying: Where models are rebuilt from released answers before they are returned: in a
            process of its own, which the first question starts and the session's end ends, if
            None; `HERE` starts none. The guarantee of every release says where.
        accept_useless: Whether to release what says nothing, as public facts show.

    Raises:
        ParameterError: one of them is something else.
        SourceError: the table lacks a declared column, one is of another type than is declared, or
            a record does not fit and is refused; nothing is spent.
    """

    def __init__(
        self,
        budget: Ledger | PrivacyBudget,
        domain: Domain,
        table: Table | Source | Unopened,
        *,
        adjacency: Adjacency | str | None = None,
        on_invalid: Literal["refuse", "project"] = "refuse",
        registry: Registry | None = None,
        expected: int | None = None,
        public: Mapping[str, Table | Unopened] | None = None,
        accept_delta: bool = False,
        replaying: Replayer | None = None,
        accept_useless: bool = False,
    ) -> None:
        super().__init__()
        forbid_core_dumps()
        adjacency = None if adjacency is None else relation_of(adjacency)
        records, self._code = admitted(budget, domain, table, on_invalid, expected, public)
        # A ledger's sums are about its own relation. A budget in memory takes what the domain's
        # declarations protect.
        ledger_adjacency = budget.total.adjacency if isinstance(budget, Ledger) else None
        default_adjacency = ADD_REMOVE if domain.exact is None else REPLACE_ONE
        self.adjacency = adjacency or ledger_adjacency or domain.relation(default_adjacency)
        self._ledger = budget if isinstance(budget, Ledger) else None
        # The sums serve without a ledger.
        self._starts = _starts(budget, self.adjacency)
        self._sums, self._delta = self._starts[0], self._starts[0].total.delta
        self._domain, self._records, self._on_invalid = domain, records, on_invalid
        self._registry, self._expected = registry, expected
        self._accept_delta, self._accepts = accept_delta, accept_useless
        self._replayer = CleanProcess() if replaying is None else replaying
        require_apart(domain, table, public or {})
        self._inputs: dict[str, PublicInput] = {}
        for name, item in (public or {}).items():
            with below("public", name):
                self._inputs[name] = read_public(domain, name, item)
        self._releases: list[PaidRelease] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._replayer.close()

    def __repr__(self) -> str:
        return f"Session({len(self._releases)} releases; left {self.left})"

    __str__ = Shown.text

    @property
    def releases(self) -> tuple[PaidRelease, ...]:
        """Every release of this session, in order."""
        return tuple(self._releases)

    @property
    def left(self) -> Left:
        """What is left, in words: the epsilon, at the budget's delta, of one more release.

        `session.left.epsilon(delta)` is the number.
        """
        budget = self._sums.left() if self._ledger is None else self._ledger.left()
        epsilon = budget.of_one_release(self._delta)
        kind = f" at delta = {self._delta:g}" if budget.mu > 0 else ", pure"
        remainder = Left(f"epsilon = {shown_down(epsilon)}{kind}" if epsilon > 0 else "nothing")
        remainder.budget = budget
        return remainder

    bounded_mean = question_method("statistics.bounded_mean", "column")
    count = question_method("statistics.count")
    covariance = question_method("statistics.covariance", "column", "other")
    marginals = question_method("statistics.marginals", "columns", tables=True)
    distinct = question_method("statistics.distinct", "of")
    group_by = question_method("statistics.group_by", "by", tables=True)
    histogram = question_method("statistics.histogram", "column")
    mean = question_method("statistics.mean", "column")
    private_groups = question_method("statistics.private_groups", "column", "mean_of")
    private_keys = question_method("statistics.private_keys", "column")
    quantiles = question_method("statistics.quantiles", "column", "quantiles")
    ratio = question_method("statistics.ratio", "column", "over")
    running = question_method("statistics.running", "column")
    share = question_method("statistics.share", "meets")
    sum = question_method("statistics.sum", "column")
    table = question_method("statistics.table", "marginals", tables=True)
    top = question_method("statistics.top", "column", "k")
    variance = question_method("statistics.variance", "column")
    workload = question_method("statistics.workload", "column")

    def plan(
        self,
        questions: Sequence[Question],
        *,
        epsilon: float,
        weights: Sequence[float] | None = None,
    ) -> Plan:
        r"""Price several questions together; nothing is charged, and no record is read.

        A question of share s has a variance of 1/s times what it had only, so that the weighted
        sum of these is least where s is in proportion to :math:`\sqrt w`; of pure noise, whose
        epsilons add up, to :math:`w^{2/3}`.

        Args:
            questions: Learners; or names with fields: `("statistics.mean", {"column": "age"})`.
            epsilon: What all of them together may cost, at the session's delta.
            weights: How much the variance of each matters; as much as of the others if None.

        Raises:
            ParameterError: there are no questions, or not as many weights, each above 0.
            SpecError: a question names no learner, or a field that it has not.
            NoClaimError: no guarantee can be stated.
        """
        is_list = isinstance(questions, Sequence)
        amounts = [1.0] * len(questions) if is_list and weights is None else weights
        need(
            is_list and isinstance(amounts, Sequence) and len(questions) == len(amounts) > 0,
            "a session",
            "questions in a list, and a weight for each",
            "questions",
            describe_type(questions),
        )
        # Names distinguish the questions : they are numbered on from the earlier releases.
        releases: list[Release] = []
        for question, weight in zip(questions, cast(Sequence[float], amounts), strict=True):
            with below("questions", len(releases)):
                learner = self.learner(*question) if isinstance(question, tuple) else question
                require_learner(learner)
            with below("weights", len(releases)):
                need_positive("a question", weight=weight)
            number = len(self._releases) + len(releases) + 1
            releases.append(
                Release(
                    learner=learner,
                    name=f"{type(learner).__name__.lower()}-{number}",
                    share=float(weight) ** (1 / 2 if self._delta else 2 / 3),
                )
            )
        with at_arguments(of_questions=True):
            return self._priced(releases, epsilon)

    def ask(
        self,
        questions: Sequence[Question],
        *,
        epsilon: float,
        weights: Sequence[float] | None = None,
    ) -> tuple[Published, ...]:
        """Ask several questions in one release, which is charged once; what `plan` priced.

        Returns:
            As many results: a table where the answer is one, else what the learner publishes.

        Raises: as `plan` and `release`.
        """
        plan = self.plan(questions, epsilon=epsilon, weights=weights)
        return tuple(map(only_table, self._pay(plan, [r.name for r in plan.request.releases])))

    def learner(self, name: str, fields: Mapping[str, Any] | None = None) -> AnyLearner:
        """Return a learner by its name in the registry, with its fields.

        Raises:
            SpecError: it has no such field, or lacks one.
        """
        registry = Registry.default() if self._registry is None else self._registry
        return make_learner(name, registry, fields or {})

    def fit(
        self, learner: AnyLearner, *, epsilon: float, mechanism: Mechanisms | None = None
    ) -> Model:
        """Fit a learner that predicts, at this epsilon, and return its model.

        Raises:
            ContractError: the learner publishes no model.
        """
        require_learner(learner)
        if not promises(learner, Model):
            kinds = describe_kinds(learner)
            raise ContractError(f"{type(learner).__name__} publishes {kinds}: use `release`")
        return cast(Model, self.release(learner, epsilon=epsilon, mechanism=mechanism))

    def release(
        self,
        learner: AnyLearner,
        *,
        epsilon: float,
        mechanism: Mechanisms | None = None,
        name: str = "",
        inputs: Sequence[str] = (),
    ) -> Published:
        """Return what any learner publishes: priced, charged, and only then computed.

        Args:
            epsilon: What this release by itself may cost, at the session's delta.
            mechanism: For every query, or one by query name; by each query's norm if None.
            name: What it is entered as; the learner's class if empty.
            inputs: What the learner starts from: names of public records, and of earlier releases
                of this session (of several with one name, the first).

        Raises:
            SpecError: there is no such input.
            NoClaimError: no guarantee can be stated.
            UselessRelease: public facts show that it says nothing; nothing is spent.
            BudgetExceededError: it costs more than is left; nothing is spent, nothing read.
            SourceError: the table does not fit the domain; what was charged stays spent.
        """
        require_learner(learner)
        require_arguments(mechanism, name, inputs)
        # Priced, and only then charged.
        with at_arguments(of_questions=False):
            plan = self._priced(
                [Release(learner=learner, mechanism=mechanism, inputs=tuple(inputs))], epsilon
            )
        return self._pay(plan, [name])[0]

    def _priced(self, releases: Sequence[Release], epsilon: float) -> Plan:
        self._require_here(ContractError)
        # Started here, so that it imports what it needs while this process prices and encodes.
        self._replayer.start()
        # Priced before the table is touched: what cannot be guaranteed is refused at no cost.
        plan = price(
            domain=self._domain,
            adjacency=self.adjacency,
            budget=PrivacyBudget(epsilon=require_epsilon(epsilon), delta=self._delta),
            releases=releases,
            public=self._inputs if any(release.inputs for release in releases) else {},
            on_invalid=self._on_invalid,
            registry=self._registry,
            expected=self._expected,
            accept_useless=[release.name for release in releases] if self._accepts else (),
            accept_delta=self._accept_delta,
        )
        plan.schedule.require_useful(plan.randomness)
        return plan

    def _pay(self, plan: Plan, names: Sequence[str]) -> tuple[Published, ...]:
        """What a plan's releases publish, entered by these names; empty ones are completed."""
        # One release at a time: the sums that let it through are the sums that it is added to.
        with self._lock:
            releases, first = plan.schedule.releases, len(self._releases) + 1
            entries = [
                name or f"{type(release.learner).__name__.lower()}-{number}"
                for number, (name, release) in enumerate(zip(names, releases, strict=True), first)
            ]
            reservation, purpose = None, ", ".join(entries)
            if self._ledger is not None:
                reservation = plan.reserve(self._ledger, purpose)
            else:
                epsilon = plan.request.budget.epsilon
                self._sums = self._add_charge(self._sums, plan.charge(), purpose, epsilon)
            # Charged by now, and not given back if it fails: that it failed may depend on a record.
            outcome = plan.run(
                self._records,
                reservation=reservation,
                replaying=self._replayer,
                code=self._code,
            )
            models = tuple(outcome.models.values())
            rows = zip(entries, models, outcome.descriptions.values(), releases, strict=True)
            for entry_name, published, description, scheduled in rows:
                # As it is now: what the caller does to the object reaches no later release.
                paid_input = PublicInput(
                    copy=Before(published).copy,
                    premises=(
                        f"the input {entry_name!r} is a release of this session, paid for by "
                        "itself",
                        *scheduled.premises,
                    ),
                )
                self._inputs = {entry_name: paid_input, **self._inputs}
                self._releases.append(
                    PaidRelease(
                        name=entry_name,
                        published=published,
                        guarantee=outcome.guarantee,
                        left=self.left,
                        description=description,
                    )
                )
        return models

    def _add_charge(self, spent: Spent, charge: Charge, entry_name: str, epsilon: float) -> Spent:
        """Return the sums in memory after one more release.

        Raises:
            BudgetExceededError: what it costs, and what is left, in words.
        """
        sums, refusal = [], ""
        # Nothing was answered before the first charge: no answer decides how costs add up.
        for start in [spent] if spent.charges else self._starts:
            try:
                sums.append(settled(start, charge)[0])
            except BudgetExceededError as error:
                refusal = refusal or error.message
        # Where epsilons do not show why it is refused, the sums say what they keep and lack.
        why = f"costs more than the session has left: {self.left}"
        if epsilon <= self.left.epsilon(self._delta):
            why = f"does not add up with what was released: {refusal}. Ask it in another session"
        need(
            sums,
            BudgetExceededError,
            f"{entry_name} at epsilon = {epsilon:g} {why}; nothing was spent and no record was "
            f"read",
        )
        return max(sums, key=lambda after: after.left().largest)
