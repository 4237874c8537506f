"""Opacus: dpcore's accountants behind its accountant interface, and training that a ledger pays.

Needs no package: the interface (`opacus.accountants.IAccountant`) is a set of methods, which
`PrivacyEngine.accountant` may be set to. A step is a Gaussian on a Poisson sample under add/remove:
Opacus's noise multiplier is noise over the clipping norm, and its data loader samples so. Where a
loader does something else (`poisson_sampling=False`), no accountant of Opacus's interface can know,
and the number is that of Poisson samples.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from dpcore.accounting.filters import BudgetExceededError
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.adjacency import ADD_REMOVE
from dpcore.errors import ContractError, NoClaimError, ParameterError
from dpcore.events.base import Event
from dpcore.events.gaussian import GaussianEvent
from dpcore.events.poisson import PoissonSampledEvent
from dpcore.ledger.book import Ledger
from dpcore.ledger.charge import Charge
from dpcore.single_use import SingleUse

Steps = tuple[float, float, int]
"""Noise multiplier, sample rate, and how many steps."""


def step_event(noise_multiplier: float, sample_rate: float) -> Event:
    """The event of one step under add/remove.

    Raises:
        ParameterError: the noise is not finite and > 0, or the rate is outside (0, 1].
    """
    if not 0 < sample_rate <= 1:
        raise ParameterError("a step", "a sample_rate in (0, 1]", "sample_rate", sample_rate)
    noise = GaussianEvent.of_noise(float(noise_multiplier), ADD_REMOVE)
    # every record takes part in the step: nothing is amplified
    if sample_rate == 1:
        return noise
    return PoissonSampledEvent(event=noise, sampling_probability=float(sample_rate))


class StepAccountant(ABC):
    """Opacus's interface over a history of steps; `step` says what may be added to it."""

    _NAME: ClassVar[str] = "dpcore"

    def __init__(self) -> None:
        self.history: list[Steps] = []

    @abstractmethod
    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Note one step, before its result is used."""

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """The certified upper end for the steps of the history, in nats; infinite without one.

        Raises:
            ValueError: `delta` is outside [0, 1).
        """
        accountant = AutoAccountant(ADD_REMOVE)
        for noise, rate, count in self.history:
            # a step without noise has no bound; one at rate 0 reads no record
            if noise == 0 and rate > 0:
                return math.inf
            if rate > 0:
                accountant = accountant.compose(step_event(noise, rate), count)
        try:
            return accountant.epsilon(delta).upper if self.history else 0.0
        except NoClaimError:
            return math.inf

    def __len__(self) -> int:
        """How many steps the history has."""
        return sum(count for _, _, count in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """By what name Opacus knows it."""
        return cls._NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """What Opacus attaches to its optimiser: it notes a step after the noise is added.

        Args:
            sample_rate: Of one batch; accumulated batches add up.
        """

        def hook(optimizer: Any) -> None:
            rate = sample_rate * optimizer.accumulated_iterations
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)

        return hook

    def state_dict(self, destination: Any = None) -> Any:
        """The history and the name, put into `destination` if there is one."""
        state = {} if destination is None else destination
        state["history"] = list(self.history)
        state["mechanism"] = self.mechanism()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the history of a checkpoint.

        Raises:
            ValueError: it is empty, damaged, or of another accountant.
        """
        if not state_dict or not {"history", "mechanism"} <= state_dict.keys():
            raise ValueError("a state needs the keys `history` and `mechanism`")
        if state_dict["mechanism"] != self.mechanism():
            raise ValueError(f"the state is of another accountant, not of {self.mechanism()!r}")
        # all of it is checked before any is taken: a damaged history would understate the cost
        history = []
        for noise, rate, count in state_dict["history"]:
            if not (noise >= 0 and 0 <= rate <= 1 and count == int(count) and count >= 1):
                raise ValueError("the history needs noise >= 0, rates in [0, 1] and counts >= 1")
            history.append((float(noise), float(rate), int(count)))
        self.history = history

    def _note(self, noise: float, rate: float) -> None:
        """Add one step to the history; equal steps in a row are one entry."""
        # Opacus stores (noise, rate, count), and its checkpoints must be read back
        last = self.history[-1] if self.history else None
        if last is not None and last[:2] == (noise, rate):
            self.history[-1] = (noise, rate, last[2] + 1)
        else:
            self.history.append((noise, rate, 1))


class OpacusAccountant(StepAccountant):
    """The number alone: certified, and as tight as `dpcore account`.

    `get_epsilon` holds for a schedule that was fixed in advance, as for Opacus's own accountants.
    """

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Note one step.

        Raises:
            ParameterError: the noise is negative or no number, or the rate is outside [0, 1].
        """
        if not noise_multiplier >= 0:
            raise ParameterError(
                "a step", "a noise_multiplier >= 0", "noise_multiplier", noise_multiplier
            )
        if not 0 <= sample_rate <= 1:
            raise ParameterError("a step", "a sample_rate in [0, 1]", "sample_rate", sample_rate)
        self._note(float(noise_multiplier), float(sample_rate))


class LedgerAccountant(StepAccountant, SingleUse):
    """Training that a ledger has paid for: all planned steps are spent when this is made.

    A step that was not planned raises before the optimiser uses its gradient, so that training
    stops. A planned step also pays for one with more noise or a smaller rate. What was planned and
    not used stays spent. A checkpoint carries the history for `get_epsilon`, and no right to
    further steps: to go on from it, plan the remaining steps with a new accountant.

    Args:
        ledger: Where to spend.
        planned: Noise multiplier, sample rate and number of steps, for each part of the training.
        what: What for, in a few public words, for the ledger's rows.

    Raises:
        ParameterError: nothing is planned, or a number is out of range.
        BudgetExceededError, LedgerError: the ledger refuses, or cannot be used. Nothing is spent.
    """

    def __init__(self, ledger: Ledger, planned: Sequence[Steps], what: str = "opacus") -> None:
        StepAccountant.__init__(self)
        SingleUse.__init__(self)
        events = tuple((step_event(noise, rate), count) for noise, rate, count in planned)
        # paid before the first step: training that crashes leaves too much spent, never too little
        ledger.spend(Charge(events=events), what)
        self._open_steps = [(float(noise), float(rate), count) for noise, rate, count in planned]

    @property
    def left(self) -> int:
        """How many planned steps were not taken yet."""
        return sum(count for _, _, count in self._open_steps)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Take one of the planned steps.

        Raises:
            BudgetExceededError: none that is left covers it.
            ContractError: another process made this accountant.
        """
        # a forked copy would take the same planned steps again
        self._require_here(ContractError)
        for index, (noise, rate, count) in enumerate(self._open_steps):
            # more noise and a smaller rate cost no more than what was paid
            if noise <= noise_multiplier and sample_rate <= rate and count > 0:
                self._open_steps[index] = (noise, rate, count - 1)
                self._note(float(noise_multiplier), float(sample_rate))
                return
        raise BudgetExceededError(
            f"no planned step is left for noise_multiplier={noise_multiplier!r}, "
            f"sample_rate={sample_rate!r}: plan it when the accountant is made"
        )
