r"""The best of several learners, chosen by private losses; all of it in one guarantee.

Theorem: with every candidate's model fixed by earlier answers, a record's loss

.. math:: \min\Big(1,\Big(\frac{\mathrm{clip}(f(x),\pm M)-y}{2Mc}\Big)^2\Big)
          \quad\text{or, of two classes,}\quad 1[\text{wrong}]

is a number in [0, 1] that depends on that record only. Minus their sum moves by at most 1, in the
maximum norm over all candidates, when a record comes, goes or is replaced. A record that comes or
goes moves all sums one way, so that their changes lie at most 1 apart; of a replaced one at most 2.
Permute-and-flip chooses (McKenna & Sheldon 2020), or the exponential mechanism by that range, which
costs less next to Gaussian noise; what the choice costs is composed with the candidates.

Candidates see the same records as the choice does: a loss on records that a model was fitted on is
too small, but what is private cannot be far from what it would be on others.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Learner, Public, Published, Query, Records
from dpcore.checks import fraction
from dpcore.errors import ContractError, ParameterError
from dpcore.exact import Exact
from dpcore.learner import State, promises
from dpcore.models import ScoringModel
from dpcore.models.description import ShownModel
from dpcore.query import Reads
from dpcore.randomness import LearnerRandomness
from dpcore_models.learners.losses import LOSS_UNIT, require_clip, total_loss

CHOICE = "choice"
FITS = "fits"
_SATURATION = 2**53  # units; sums saturate there
_ROWS = 4096


def _require_candidates(instance: Any, attribute: Any, value: tuple[Learner, ...]) -> None:
    """Validate the candidates: at least two learners that publish models with scores."""
    if len(value) < 2 or not all(isinstance(candidate, Learner) for candidate in value):
        names = [type(candidate).__name__ for candidate in value]
        raise ParameterError(
            "best_of", "two or more learners that publish parameters", attribute.name, names
        )
    # A model without scores would leave the choice no losses to compare.
    mute = [type(one).__name__ for one in value if not promises(one, ScoringModel)]
    if mute:
        raise ParameterError(
            "best_of",
            "learners whose models score encoded columns and that say publishes = ScoringModel",
            attribute.name,
            mute,
        )


def _all_total(learner: "BestOf") -> bool:
    return all(candidate.total for candidate in learner.candidates)


@attrs.frozen(eq=False)
class _Fitted:
    """A model, equal to another with the same arrays."""

    model: ScoringModel

    def __eq__(self, candidate: object) -> bool:
        if not isinstance(candidate, _Fitted):
            return NotImplemented
        arrays, candidate_arrays = self.model.arrays(), candidate.model.arrays()
        return arrays.keys() == candidate_arrays.keys() and all(
            np.array_equal(arrays[name], candidate_arrays[name]) for name in arrays
        )

    __hash__ = None  # type: ignore[assignment]  # equality is about arrays, which have none


@attrs.frozen(kw_only=True, eq=False)
class _State:
    """Which candidate is under way, and the models that are fixed."""

    public: Public
    plan: Mapping[str, Query]
    models: tuple[Published, ...]
    inner: State
    chosen: int | None = None


@attrs.frozen(kw_only=True)
class BestOf(Learner):
    """Fit every candidate on an equal fraction of the budget, and publish the choice and all of
    them.

    Query `fits.2.gradient` is the query `gradient` of the second candidate; a spec gives all their
    mechanisms at once under `fits`, and that of the choice under `choice`.
    Losses are computed record by record.

    Total: where all candidates are; a score that is no finite number, or that fails, counts as the
    largest loss.

    Args:
        candidates: Two or more learners, whose models score encoded columns.
        share: Of the budget, for the choice.
        clip: c in (0, 1]: an error of that part of the label's range, or more, is a loss of 1.
    """

    bounds: ClassVar[tuple[str, ...]] = ("best_of",)
    publishes: ClassVar[type[Any]] = ScoringModel

    candidates: tuple[Learner, ...] = attrs.field(converter=tuple, validator=_require_candidates)
    share: float = attrs.field(default=0.1, validator=fraction)
    clip: float = attrs.field(default=0.25, validator=require_clip)
    total: bool = attrs.field(  # type: ignore[misc]  # the candidates', per instance
        init=False, default=attrs.Factory(_all_total, takes_self=True)
    )

    def cut_columns(self, domain: Domain) -> tuple[str, ...]:
        """Return the ranges that any of the candidates cuts."""
        return tuple({name for learner in self.candidates for name in learner.cut_columns(domain)})

    def part(self, public: Public) -> Public:
        """Return the public facts for a candidate, with its own fraction of the budget."""
        if public.mu is None:
            return public
        candidate_fraction = (1 - self.share) / len(self.candidates)
        # The squares of mu add up over candidates: a fraction of the budget is a proportion of
        # mu^2.
        return attrs.evolve(public, mu=public.mu * math.sqrt(candidate_fraction))

    def own(self, query: Query, public: Public) -> tuple[int, Query]:
        """Return the index of the candidate that a query belongs to, and its own query."""
        # Only two splits: the candidate's own name may hold points, as where choices are nested.
        _, number, name = query.name.split(".", 2)
        index = int(number) - 1
        (candidate_query,) = (
            q for q in self.candidates[index].queries(self.part(public)) if q.name == name
        )
        return index, attrs.evolve(candidate_query, distance=query.distance, args=query.args)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return all queries that the candidates may ask, and `choice` once."""
        fit_queries: list[Query] = []
        candidate_fraction = (1 - self.share) / len(self.candidates)
        for number, candidate in enumerate(self.candidates, start=1):
            # Proportions of a candidate's queries are relative: they are rescaled to its own.
            queries = candidate.queries(self.part(public))
            total = math.fsum(query.share for query in queries)
            fit_queries += [
                attrs.evolve(
                    query,
                    name=f"{FITS}.{number}.{query.name}",
                    share=candidate_fraction * query.share / total,
                )
                for query in queries
            ]
        shape = (len(self.candidates),)
        return (
            *fit_queries,
            Query(
                name=CHOICE,
                shape=shape,
                distance=Distance.LINF,
                share=self.share,
                reads=Reads.SUMS,
            ),
        )

    def start(self, public: Public) -> _State:
        """Return the state before the first query of the first candidate with one."""
        state = _State(
            public=public,
            plan={query.name: query for query in self.queries(public)},
            models=(),
            inner=self.candidates[0].start(self.part(public)),
        )
        return self._advance(state)

    def _advance(self, state: _State) -> _State:
        """Fit the candidates that are finished, and start the next one."""
        while len(state.models) < len(self.candidates):
            candidate = self.candidates[len(state.models)]
            if candidate.ask(state.inner) is not None:
                return state
            models = (*state.models, candidate.model(state.inner))
            later_candidates = self.candidates[len(models) :]
            inner = later_candidates[0].start(self.part(state.public)) if later_candidates else None
            state = attrs.evolve(state, models=models, inner=inner)
        return state

    def ask(self, state: _State) -> Query | None:
        """Return the current candidate's query; after the last candidate's, the choice."""
        if state.chosen is not None:
            return None
        number = len(state.models)
        # The theorem needs every model to be fixed by earlier answers before losses are asked for.
        if number == len(self.candidates):
            return attrs.evolve(state.plan[CHOICE], args={"models": _require_scorers(state.models)})
        query = self.candidates[number].ask(state.inner)
        assert query is not None, "a candidate that has no more to ask is settled"
        return attrs.evolve(state.plan[f"{FITS}.{number + 1}.{query.name}"], args=query.args)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> Any:
        """PRIVATE: return the candidate's statistic, or minus each candidate's sum of losses."""
        if query.name != CHOICE:
            index, inner_query = self.own(query, public)
            return self.candidates[index].statistic(inner_query, records, self.part(public), secret)
        assert query.args is not None, "a query carries the models"
        models = tuple(fitted.model for fitted in query.args["models"])
        zero = (Exact.zeros((len(models),), LOSS_UNIT),)
        (total,) = records.fold(partial(self._block_losses, models, public.domain), zero, _ROWS)
        # Minus, as the mechanism takes the largest entry. Saturation moves nothing farther apart.
        return -np.minimum(total.floats(), math.ldexp(_SATURATION, LOSS_UNIT))

    def _block_losses(
        self, models: tuple[ScoringModel, ...], domain: Domain, block: Records
    ) -> tuple[Exact]:
        """PRIVATE: return the sums of a block's rounded losses by each model."""
        losses = [total_loss(model, block, domain, self.clip) for model in models]
        return (Exact.of(losses, LOSS_UNIT),)

    def update(self, state: _State, answer: Answer) -> _State:
        """Return the candidate's update, or the choice."""
        number = len(state.models)
        if number == len(self.candidates):
            return attrs.evolve(state, chosen=int(np.argmax(answer.value)))
        name = answer.query.name.split(".", 2)[2]
        query = attrs.evolve(answer.query, name=name)
        inner_answer = attrs.evolve(answer, query=query)
        return self._advance(
            attrs.evolve(state, inner=self.candidates[number].update(state.inner, inner_answer))
        )

    def model(self, state: _State) -> "ChosenModel":
        """Return the model of the candidate that the released choice names."""
        assert state.chosen is not None, "the choice is made"
        (model,) = _require_scorers((state.models[state.chosen],))
        return ChosenModel(model=model.model, chosen=state.chosen)


@attrs.frozen(kw_only=True, eq=False)
class ChosenModel(ShownModel):
    """The model of the chosen candidate.

    Args:
        chosen: Which one, counted from 0.
    """

    model: ScoringModel
    chosen: int

    def predict(self, table: Any) -> NDArray[Any]:
        """Return the chosen model's predictions for a table, shape (n,)."""
        return self.model.predict(table)

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chosen model's scores of encoded rows, shape (n,)."""
        return self.model.score(encoded)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the chosen model's arrays, and which candidate it is; of nested choices, each."""
        named_arrays = dict(self.model.arrays())
        nested = named_arrays.pop("chosen", None)
        chosen = np.array(self.chosen) if nested is None else np.append(self.chosen, nested)
        return {**named_arrays, "chosen": chosen}


def _require_scorers(models: tuple[Published, ...]) -> tuple[_Fitted, ...]:
    """Check that models can score, and wrap them.

    Raises:
        ContractError: one of them cannot score encoded columns.
    """
    for model in models:
        if not isinstance(model, ScoringModel):
            raise ContractError(
                f"best_of needs models with a method score, {type(model).__name__} has none"
            )
    return tuple(_Fitted(model) for model in models if isinstance(model, ScoringModel))
