"""Outcome: what a run published, which travels, and what it opened, which stays in its process."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from dpcore.errors import ContractError, need_value
from dpcore.guarantee import Guarantee
from dpcore.learner import Answer, Model, Published
from dpcore.models.description import Description, only_model, only_published
from dpcore.private.opening import Opened
from dpcore.randomness import PublicRandomness
from dpcore.shown import Shown
from dpcore.transcript.isolated_copies import Arrays


@attrs.frozen(kw_only=True, eq=False)
class Outcome(Shown):
    """What a run published, and (private) what it opened.

    Copies and pickles hold what was published by itself.

    Args:
        models: By release name, rebuilt from the answers; tables, or an object of another class,
            where nothing is predicted.
        arrays: Of the models, by release name: what the replay compared, and files are made of.
        descriptions: What models hand over to be shown, by release name.
        answers: By release name, in order of asking; "evaluation" holds a paid evaluation's.
        guarantee: Of this run; `none` if its randomness was known or its release boundary was not
            private.
        randomness: The published key.
        note: Why the answers were not replayed in a clean process, or empty.
        opened: PRIVATE: for the operator's own evaluation.
    """

    models: Mapping[str, Published]
    arrays: Mapping[str, Arrays]
    answers: Mapping[str, tuple[Answer, ...]]
    guarantee: Guarantee
    randomness: PublicRandomness
    note: str = ""
    descriptions: Mapping[str, Description] = attrs.field(factory=dict)
    _opened: Opened | None = attrs.field(default=None, repr=False)

    @property
    def opened(self) -> Opened:
        """PRIVATE: the records, for the operator's own evaluation.

        Raises:
            ContractError: this is a copy, which has none.
        """
        return need_value(
            self._opened,
            ContractError,
            "this outcome is a copy: records stay in the process that opened them, with the "
            "outcome that `run` returned",
        )

    @property
    def model(self) -> Model:
        """The only model.

        Raises:
            NoModelError: there are several, or none (a ValueError).
        """
        return only_model(self.models)

    @property
    def published(self) -> Published:
        """What the only release published, whatever it is.

        Raises:
            NoModelError: there are several releases.
        """
        return only_published(self.models)

    def __reduce__(self) -> Any:
        # `copy`, `deepcopy` and every pickler ask here; records refuse all of them.
        fields = {f.name.removeprefix("_"): getattr(self, f.name) for f in attrs.fields(Outcome)}
        return partial(Outcome, **{**fields, "opened": None}), ()
