"""What a learner promises, checked on synthetic records."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Learner, Published, Query, Records, SecretRandomness
from dpcore.encoding.tables import project_table
from dpcore.functions import FunctionLearner
from dpcore.learner import AnyLearner, promises
from dpcore.models import Described, Model, ScoringModel, Transformer
from dpcore.models.description import describe
from dpcore.transcript.isolated_copies import published, settled, transcript
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, conversation, seen
from dpcore_attacks.attacks.statistic import Statistic, compute, is_numeric, same
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Verdict,
    fail_if,
    judge_all,
    run_if_planned,
    skip_if,
)
from dpcore_attacks.laws.learners import private_side, processes

QUERIES_PURE = Law(
    "learner.queries-pure", "The planned queries depend on the domain, the randomness and mu only."
)
QUERIES_AS_PLANNED = Law(
    "learner.asks-as-planned",
    "Every query is a planned query with only args set, at most at_most times, and the queries "
    "end.",
)
STATISTIC_PURE = Law(
    "learner.statistic-pure",
    "The statistic depends on its arguments only: not on earlier calls, other records or a "
    "generator of its own.",
)
TOTAL = Law(
    "learner.total",
    "A learner declared total returns a finite statistic of the right shape for every dataset.",
)
INPUTS_UNCHANGED = Law(
    "learner.inputs-unchanged", "No method changes the records, args, answers or state it is given."
)
PUBLIC_BLIND = Law(
    "learner.public-blind",
    "The public part is the same whatever records the private part has seen.",
)
MODEL_REPLAYS = Law(
    "learner.model-replays",
    "Equal answers give an equal model, in its arrays and its predictions; each row's is its own.",
)

LAWS = (
    QUERIES_PURE,
    QUERIES_AS_PLANNED,
    STATISTIC_PURE,
    TOTAL,
    INPUTS_UNCHANGED,
    PUBLIC_BLIND,
    MODEL_REPLAYS,
    *private_side.LAWS,
    *processes.LAWS,
)

_PAIRS = 45  # datasets on which totality is tried, five of each construction


def learner_verdicts(case: Case, seed: int = 0) -> list[Verdict]:
    """Return all laws of one learner at one domain; the case's bound plays no part."""
    checks: dict[Law, Callable[[_Trial], str]] = {
        QUERIES_PURE: _queries_pure,
        QUERIES_AS_PLANNED: _queries_as_planned,
        STATISTIC_PURE: _statistic_pure,
        TOTAL: _total,
        INPUTS_UNCHANGED: _inputs_unchanged,
        PUBLIC_BLIND: _public_blind,
        MODEL_REPLAYS: _model_replays,
    }
    size = case.domain.exact or case.domain.limit or "private"
    subject = f"{type(case.learner).__name__}, {case.adjacency}, n={size}"
    trial = _Trial(case, seed)
    # A function has no state machine: its public part is a plan, and nothing is assembled.
    if isinstance(case.learner, FunctionLearner):
        checks |= {PUBLIC_BLIND: _plan_blind, MODEL_REPLAYS: _no_model}
    verdicts = judge_all(
        {law: partial(run_if_planned, check) for law, check in checks.items()}, subject, trial
    )
    verdicts += private_side.private_side_verdicts(case, subject, seed)
    return verdicts + processes.process_verdicts(case, subject, seed)


def _plan_blind(trial: _Trial) -> str:
    """Return a function's public part is its plan, which the private part must leave alone."""
    learner, public = copy.deepcopy(trial.case.learner), trial.case.public
    (first,) = learner.queries(public)
    for records in trial.datasets(5):
        trial.statistic(learner, first, records)
        fail_if(
            learner.queries(public) != (first,),
            "the planned function changed once records were seen",
        )
    return "10 fits"


def _no_model(trial: _Trial) -> str:
    raise NotApplicableError(private_side.NO_MODEL)


class _Trial:
    """One case with reproducible datasets, answers and randomness."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.seed = case, seed
        self.rows = Rows(case.domain)

    def rng(self) -> np.random.Generator:
        return private_side.generator(self.seed)

    def pairs(self, count: int) -> list[Pair]:
        """Neighbouring datasets of the case's size (20 at most where it is private)."""
        return [*private_side.neighbours(self.case, self.seed, count)]

    def datasets(self, pairs: int) -> Iterator[Records]:
        """Return both datasets of each of so many pairs."""
        return private_side.datasets(self.case, self.seed, pairs)

    def answers(self, scale: float = 1.0) -> list[NDArray[Any]]:
        """Return what a synthetic run answers, in order of asking."""
        exchanges = conversation(self.case, None, self.rng(), scale)
        return [answer.value for _, _, answer in exchanges]

    def queries(self) -> list[Query]:
        """The queries of that run, at most twenty of them; a function is asked for as planned."""
        if isinstance(self.case.learner, FunctionLearner):
            return list(self.case.learner.queries(self.case.public))
        queries = [query for _, query, _ in conversation(self.case, None, self.rng(), 1.0)]
        # The first and the last asks: a state that goes wrong with time shows at the end.
        return queries[:10] + queries[10:][-10:]

    def statistic(self, learner: AnyLearner, query: Query, records: Records) -> Statistic:
        randomness = SecretRandomness.rehearsal(self.seed).learner(0, query.name, 1)
        sample = seen(query, records, self.seed)
        return compute(learner, query, sample, self.case.public, randomness)


def _speaker(trial: _Trial) -> Learner:
    """Return an instance of its own; laws of its state machine are judged where there is one."""
    return cast(Learner, copy.deepcopy(trial.case.learner))


def _queries_pure(trial: _Trial) -> str:
    learner, public = trial.case.learner, trial.case.public
    first = learner.queries(public)
    for replanned_queries in (
        learner.queries(public),
        copy.deepcopy(learner).queries(trial.case.public),
    ):
        fail_if(
            replanned_queries != first, "two calls with equal arguments planned different queries"
        )
    names = [query.name for query in first]
    fail_if(
        not names or len(set(names)) < len(names),
        f"query names must be there and differ, got {names}",
    )
    fail_if(any(query.args is not None for query in first), "a planned query carries args")
    return f"{len(first)} queries"


def _queries_as_planned(trial: _Trial) -> str:
    planned = {query.name: query for query in trial.case.learner.queries(trial.case.public)}
    allowed = sum(query.at_most for query in planned.values())
    # Answers of any size: no noise may lead to more queries than were planned.
    for scale in (0.0, 1.0, 1e4):
        counts: dict[str, int] = {}
        for _, query, _ in conversation(trial.case, None, trial.rng(), scale):
            counts[query.name] = counts.get(query.name, 0) + 1
            requested_query = attrs.evolve(query, args=None)
            if requested_query != planned.get(query.name):
                raise BrokenLawError(_unplanned(trial, requested_query, planned))
            limit = planned[query.name].at_most
            fail_if(
                counts[query.name] > limit,
                f"the query {query.name!r} was planned for {limit} asks, one more came",
            )
    return f"at most {allowed} asks"


def _unplanned(trial: _Trial, query: Query, planned: Mapping[str, Query]) -> str:
    """In what a query that was asked is not as planned, and what planning again gives."""
    plan = planned.get(query.name)
    if plan is None:
        return f"the query {query.name!r} was asked, and planned were {', '.join(planned)}"
    fields = (field.name for field in attrs.fields(type(plan)) if type(plan) is type(query))
    pairs = {name: (getattr(plan, name), getattr(query, name)) for name in fields}
    changes = [f"{name} {old!r} became {new!r}" for name, (old, new) in pairs.items() if old != new]
    again = {query.name: query for query in trial.case.learner.queries(trial.case.public)}
    cause = (
        "what is asked depends on an answer, or on something outside the arguments of `queries`"
        if again == planned
        else "`queries` gives another plan when it is called again with equal arguments, so it "
        "depends on something outside them, such as a field, a global or a file"
    )
    changed = ", ".join(changes) or f"{type(plan).__name__} became {type(query).__name__}"
    return f"the query {query.name!r} was asked in another form than planned ({changed}): {cause}"


def _statistic_pure(trial: _Trial) -> str:
    compared = 0
    for pair in trial.pairs(9):
        for query in trial.queries():
            learner = copy.deepcopy(trial.case.learner)
            first = trial.statistic(learner, query, pair.before)
            # Neighbouring records in between: whatever they leave behind would change the repeat.
            trial.statistic(learner, query, pair.after)
            np.random.random()  # noqa: NPY002  # code that reads the global generator sees it move
            repeat = trial.statistic(learner, query, pair.before)
            fresh_instance = trial.statistic(copy.deepcopy(trial.case.learner), query, pair.before)
            fail_if(
                not same(first, repeat) or not same(first, fresh_instance),
                f"{query.name!r}: the same records gave two statistics, asked twice with others in "
                "between or by a copy of the learner: it depends on something outside its "
                "arguments, such as a field, a global or a file",
            )
            compared += 1
    return f"{compared} statistics"


def _total(trial: _Trial) -> str:
    skip_if(
        not trial.case.learner.total, "it is not declared total; its guarantees assume no_failure"
    )
    count = 0
    queries = trial.queries()
    for pair in trial.pairs(_PAIRS):
        for query, records in itertools.product(queries, (pair.before, pair.after)):
            value = trial.statistic(trial.case.learner, query, records)
            count += 1
            reason = query.unfit(value)
            fail_if(reason, f"{query.name!r}: {reason} on a dataset of {len(records)} records")
    return f"{count} statistics"


def _inputs_unchanged(trial: _Trial) -> str:
    for pair in trial.pairs(3):
        records = pair.before
        for query in trial.queries():
            args_before = copy.deepcopy(query.args)
            features, labels = records.features.tobytes(), records.labels.tobytes()
            trial.statistic(trial.case.learner, query, records)
            fail_if(
                (features, labels) != (records.features.tobytes(), records.labels.tobytes()),
                f"{query.name!r}: the statistic changed its records",
            )
            fail_if(
                not _equal(args_before, query.args),
                f"{query.name!r}: the statistic changed the args of the query",
            )
    learner = _speaker(trial)
    updates = 0
    for state, query, answer in conversation(trial.case, None, trial.rng(), 1.0):
        if updates == 20:
            break
        updates += 1
        value = answer.value.copy()
        learner.update(state, answer)
        fail_if(not same(value, answer.value), f"{query.name!r}: update changed the answer")
        # States are values: the one before the update must still ask the same.
        next_query = learner.ask(state)
        fail_if(
            next_query is None or next_query != query or not _equal(query.args, next_query.args),
            f"{query.name!r}: update changed the state it was given",
        )
    return f"{updates} answers"


def _equal(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    return first.keys() == second.keys() and all(
        np.array_equal(np.asarray(first[key]), np.asarray(second[key])) for key in first
    )


def _public_blind(trial: _Trial) -> str:
    """Runs over several neighbours with forced answers, one instance private and public at once."""
    answers, transcripts = trial.answers(), []
    for records in trial.datasets(5):
        transcripts.append(_transcript(trial, records, answers))
        # The answers are forced, so that any difference can only come from the records.
        fail_if(
            transcripts[0][0] != transcripts[-1][0],
            "with equal answers, neighbours lead to different asks",
        )
        fail_if(
            transcripts[0] != transcripts[-1],
            "with equal answers, what is published, or what it answers about rows, differs between "
            "neighbours: the public part has seen records",
        )
    return f"{len(transcripts)} runs"


def _transcript(trial: _Trial, records: Records, answers: list[NDArray[Any]]) -> tuple[str, str]:
    """Digests of everything public of one run: of its queries, and of what a user gets."""
    learner = _speaker(trial)
    case = attrs.evolve(trial.case, learner=learner)
    state = learner.start(case.public)
    answers_by_query: list[Answer] = []
    numbered = zip(itertools.count(), conversation(case, iter(answers), trial.rng(), 1.0))
    for number, (_, _, answer) in numbered:
        query = learner.ask(state)
        if query is None:
            break
        answers_by_query.append(attrs.evolve(answer, query=query))
        # The same instance computes a statistic, so that records could leak into its state.
        if number < 20:
            trial.statistic(learner, query, records)
        state = learner.update(state, answer)
    result = learner.model(state)
    return transcript(answers_by_query), private_side.digest_published(result, case, trial.seed)


def _model_replays(trial: _Trial) -> str:
    table = _table(trial)
    models = []
    for _ in range(2):
        # Two instances with equal answers, from start to model, as a replay is.
        learner = _speaker(trial)
        state = learner.start(trial.case.public)
        for _, _, answer in conversation(trial.case, iter(trial.answers()), trial.rng(), 1.0):
            state = learner.update(state, answer)
        fail_if(learner.ask(state) is not None, "after all answers, it asks once more")
        models.append(learner.model(state))
    first, second = (model.arrays() for model in models)
    fail_if(
        first.keys() != second.keys() or not all(same(first[k], second[k]) for k in first),
        "equal answers gave models with different arrays",
    )
    # What people are shown follows from the answers as the arrays do.
    digests = [published(settled(model), {}, describe(model)) for model in models]
    fail_if(
        digests[0] != digests[1], "equal answers gave objects that describe themselves differently"
    )
    fail_if(
        promises(trial.case.learner, Described) and Described not in type(models[0]).__mro__,
        "it says that it publishes a description, and its object does not extend Described",
    )
    _same_rows(trial, table, models)
    predicting = [model for model in models if isinstance(model, Model)]
    # `predicts` is declared beforehand: what is published must agree with it.
    fail_if(
        bool(predicting) != promises(trial.case.learner, Model),
        "it says otherwise whether it publishes a model",
    )
    if not predicting:
        return f"{len(first)} arrays"
    predictions = [np.asarray(model.predict(table)) for model in predicting]
    fail_if(not same(*predictions), "equal answers gave models that predict differently")
    prediction = predictions[0]
    fail_if(
        prediction.shape != (7,) or (is_numeric(prediction) and not np.isfinite(prediction).all()),
        f"predictions for 7 rows have shape {prediction.shape} or are not finite",
    )
    _one_by_one(trial, table, *predicting)
    return f"{len(first)} arrays"


def _same_rows(trial: _Trial, table: dict[str, Any], models: Sequence[Published]) -> None:
    """What a learner says that it publishes maps rows, maps them alike and to finite columns."""
    if not promises(trial.case.learner, Transformer):
        return
    transformers = [model for model in models if isinstance(model, Transformer)]
    fail_if(
        len(transformers) != len(models), "it says that it publishes a map of rows, and does not"
    )
    columns = [np.asarray(model.transform(table)) for model in transformers]
    names = transformers[0].column_names()
    fail_if(not same(*columns), "equal answers gave maps of rows that differ")
    fail_if(
        columns[0].shape != (7, len(names)) or not np.isfinite(columns[0]).all(),
        f"a map of 7 rows to {len(names)} columns gave {columns[0].shape}, or no finite numbers",
    )


def _one_by_one(trial: _Trial, table: dict[str, Any], first: Model, second: Model) -> None:
    """Rows only, in order and backwards: `best_of` and paid evaluations rest on each row's own
    loss.
    """
    encoded = project_table(trial.case.domain, table).features
    scores = promises(trial.case.learner, ScoringModel)

    def outputs_of(model: Model, row: int) -> list[NDArray[Any]]:
        row_table = {name: cells[row : row + 1] for name, cells in table.items()}
        outputs = [np.asarray(model.predict(row_table))]
        if scores:
            outputs.append(np.asarray(cast(ScoringModel, model).score(encoded[row : row + 1])))
        return outputs

    ahead = [outputs_of(first, row) for row in range(7)]
    back = [outputs_of(second, row) for row in range(6, -1, -1)][::-1]
    fail_if(
        not all(
            same(*pair) for two in zip(ahead, back, strict=True) for pair in zip(*two, strict=True)
        ),
        "a row's prediction or score depends on the rows asked before it",
    )


def _table(trial: _Trial) -> dict[str, Any]:
    """Seven rows in the file's units."""
    raw = trial.rows.anywhere(trial.rng(), 7)
    return trial.rows.table(raw, np.zeros(7))
