"""Opacus: dpcore's accountants behind its accountant interface, and training that a ledger pays.

Needs no package: the interface (`opacus.accountants.IAccountant`) is a set of methods, which
`PrivacyEngine.accountant` may be set to. A step is a Gaussian on a Poisson sample: Opacus's noise
multiplier is noise over the clipping norm, and its data loader samples so.

That is the event of the *noisy sum*, and Opacus releases it divided by `expected_batch_size`. Left
to itself it computes that divisor, and the sample rate, from the number of records, which
add/remove protects: the width of the published noise then says it, and no epsilon covers that. So
rate and divisor are declared, as numbers that were fixed without looking at the records, and a step
with others is refused before its gradient is used. Where the exact number of records is public and
neighbours replace one record, both may follow from it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from dpcore import ADD_REMOVE, REPLACE_ONE, Adjacency, Event, Ledger
from dpcore.checks import need_positive
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.poisson_replaced import PoissonReplacedEvent
from dpcore.errors import ContractError, NoClaimError, need
from dpcore.guarantee import rounded_up
from dpcore.ledger import Charge
from dpcore.ledger.filters import BudgetExceededError
from dpcore.single_use import SingleUse

Steps = tuple[float, float, int]
"""Noise multiplier, sample rate, and how many steps."""


def step_event(
    noise_multiplier: float, sample_rate: float, adjacency: Adjacency = ADD_REMOVE
) -> Event:
    """Return the event of one step's noisy sum, under add/remove or replace-one.

    Raises:
        ParameterError: the noise is not finite and > 0, or the rate is outside (0, 1].
    """
    _require_rate(sample_rate)
    noise = GaussianEvent.of_noise(float(noise_multiplier), adjacency)
    if adjacency.replaces:
        # a record that enters or leaves the batch moves the sum by the norm, a replacement by twice
        replaced = GaussianEvent(mu=2 * noise.mu, adjacency=adjacency)
        return PoissonReplacedEvent(
            event=replaced, absent=noise, sampling_probability=float(sample_rate)
        )
    # every record takes part in the step: nothing is amplified
    if sample_rate == 1:
        return noise
    return PoissonSampledEvent(event=noise, sampling_probability=float(sample_rate))


def _require_rate(sample_rate: float) -> None:
    need(0 < sample_rate <= 1, "a step", "a sample_rate in (0, 1]", "sample_rate", sample_rate)


class PublicDivisor(float):
    """A divisor that was fixed without looking at the records, as an accountant hands it out.

    The number that Opacus computes is a plain one. It is refused even where it is equal, so that
    whether training stops does not depend on how many records there are.
    """


class StepAccountant(ABC):
    """Opacus's interface over a history of steps; `step` says what may be added to it.

    Args:
        rates: The sample rates that were fixed without looking at the records, each in (0, 1].
        expected_batch_size: By what each noisy sum is divided, fixed likewise; 1 where the
            optimiser's `loss_reduction` is "sum".
        records: Their exact number, where it is public; neighbours then replace one record.

    Raises:
        ParameterError: a number is out of range.
    """

    _NAME: ClassVar[str] = "dpcore"

    def __init__(
        self, rates: Iterable[float], expected_batch_size: float, records: int | None
    ) -> None:
        self._rates = frozenset(map(float, rates))
        for rate in self._rates:
            _require_rate(rate)
        need_positive("an accountant", expected_batch_size=expected_batch_size)
        need(
            records is None or (isinstance(records, int) and records >= 1),
            "an accountant",
            "an exact public number of records, or None",
            "records",
            records,
        )
        self.expected_batch_size = PublicDivisor(expected_batch_size)
        self.records = records
        self.history: list[Steps] = []

    @property
    def adjacency(self) -> Adjacency:
        """What neighbours the claim is about: replace-one where `records` is public."""
        return ADD_REMOVE if self.records is None else REPLACE_ONE

    @property
    def premises(self) -> tuple[str, ...]:
        """What `get_epsilon` takes for granted and cannot see, as clauses."""
        rates = ", ".join(f"{rate:.4g}" for rate in sorted(self._rates))
        fixed = "were fixed without looking at the records"
        if self.records is not None:
            fixed = f"follow from public facts, of which the exact number {self.records} is one"
        return (
            f"the sample rate ({rates}) and the divisor ({float(self.expected_batch_size):.4g}) "
            f"{fixed}",
            "the loader draws Poisson samples at that rate",
            "every record's gradient depends on its own record and the public weights only, and "
            "is clipped to the norm that the noise is a multiple of",
            "noise is drawn in floating point, whose low bits are not covered",
        )

    def statement(self, delta: float) -> str:
        """Return the claim of `get_epsilon` in one sentence, with its relation and all premises."""
        claim = (
            f"({rounded_up(self.get_epsilon(delta))}, {rounded_up(delta)})-differentially private"
        )
        return (
            f"The {len(self)} steps are {claim} under {self.adjacency}. Assumed, not derived from "
            f"the records: {'; '.join(self.premises)}."
        )

    @abstractmethod
    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Note one step, before its result is used."""

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """Return the certified upper end for the steps of the history, in nats; infinite without
        one.

        Raises:
            ValueError: `delta` is outside [0, 1).
        """
        accountant = AutoAccountant(self.adjacency)
        for noise, rate, count in self.history:
            if noise == 0:
                return math.inf
            accountant = accountant.compose(step_event(noise, rate, self.adjacency), count)
        try:
            return accountant.epsilon(delta).upper if self.history else 0.0
        except NoClaimError:
            return math.inf

    def __len__(self) -> int:
        """Return how many steps the history has."""
        return sum(count for _, _, count in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """By what name Opacus knows it."""
        return cls._NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what Opacus attaches to its optimiser: it notes a step after the noise is added.

        The hook raises before the optimiser uses the gradient.

        Args:
            sample_rate: Of one batch, one of the declared ones.

        Raises:
            NoClaimError: the rate was not declared; the hook, of each step: its divisor was not,
                it accumulates batches, or it clips adaptively.
        """
        self._require_declared_rate(sample_rate)

        def hook(optimizer: Any) -> None:
            self._require_declared_release(optimizer)
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)

        return hook

    def _require_declared_rate(self, sample_rate: float) -> None:
        # no message shows a number of Opacus's: it may follow from how many records there are
        need(
            sample_rate in self._rates,
            NoClaimError,
            "Opacus's sample rate is not one that was declared public; it is not shown, since it "
            "may follow from the number of records: build the loader as "
            "opacus.data_loader.DPDataLoader(dataset, sample_rate=r), and declare 1/int(1/r)",
        )

    def _require_declared_release(self, optimizer: Any) -> None:
        """Raise unless what the optimiser is about to use is the event of a declared step."""
        divisor = optimizer.expected_batch_size
        # a sum is not divided, whatever the optimiser has noted
        if getattr(optimizer, "loss_reduction", "mean") == "sum":
            divisor = PublicDivisor(1)
        need(
            divisor == self.expected_batch_size
            and (isinstance(divisor, PublicDivisor) or self.records is not None),
            NoClaimError,
            "the optimiser's expected_batch_size is not the one that was declared public; it is "
            "not shown, since Opacus computes it from the number of records: after make_private, "
            "set optimizer.expected_batch_size = accountant.expected_batch_size",
        )
        need(
            optimizer.accumulated_iterations == 1,
            NoClaimError,
            "a gradient accumulated over several Poisson samples may hold one record several "
            "times: take a step for each batch, or use Opacus's BatchMemoryManager",
        )
        # its noisy count is divided by the private size of the batch, and the multiplier of the
        # optimiser is that of the gradients only
        need(
            not hasattr(optimizer, "unclipped_num"),
            NoClaimError,
            "adaptive clipping releases more than the noisy sum: use flat or per-layer clipping",
        )

    def state_dict(self, destination: Any = None) -> Any:
        """Return the history, the name and the public number of records, put into `destination`."""
        state = {} if destination is None else destination
        state["history"] = list(self.history)
        state["mechanism"] = self.mechanism()
        state["records"] = self.records
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the history of a checkpoint.

        Raises:
            ValueError: it is empty, damaged, of another accountant, or of another number of
                records.
        """
        # an older state says nothing of records: no divisor of its steps was compared
        need(
            state_dict and {"history", "mechanism", "records"} <= state_dict.keys(),
            ValueError,
            "a state needs the keys `history`, `mechanism` and `records`",
        )
        need(
            state_dict["mechanism"] == self.mechanism(),
            ValueError,
            f"the state is of another accountant, not of {self.mechanism()!r}",
        )
        need(
            state_dict["records"] == self.records,
            ValueError,
            "the state's steps are about other neighbours: not the same `records`",
        )
        # all of it is checked before any is taken: a damaged history would understate the cost
        history = []
        for noise, rate, count in state_dict["history"]:
            need(
                noise >= 0 and 0 < rate <= 1 and count == int(count) and count >= 1,
                ValueError,
                "the history needs noise >= 0, rates in (0, 1] and counts >= 1",
            )
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
    """The number only: certified, and as tight as `dpcore account`.

    `get_epsilon` holds for a schedule that was fixed in advance, as for Opacus's own accountants.

    Args:
        sample_rate: Fixed without looking at the records, in (0, 1].
        expected_batch_size: By what each noisy sum is divided, fixed likewise; 1 where the
            optimiser's `loss_reduction` is "sum". The optimiser must be given this accountant's
            `expected_batch_size`.
        records: Their exact number, where it is public; neighbours then replace one record, and
            rate and divisor may follow from it.

    Raises:
        ParameterError: a number is out of range.
    """

    def __init__(
        self, *, sample_rate: float, expected_batch_size: float, records: int | None = None
    ) -> None:
        super().__init__([sample_rate], expected_batch_size, records)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Note one step.

        Raises:
            ParameterError: the noise is negative or no number.
            NoClaimError: the rate was not declared.
        """
        need(
            noise_multiplier >= 0,
            "a step",
            "a noise_multiplier >= 0",
            "noise_multiplier",
            noise_multiplier,
        )
        self._require_declared_rate(sample_rate)
        self._note(float(noise_multiplier), float(sample_rate))


class LedgerAccountant(StepAccountant, SingleUse):
    """Training that a ledger has paid for: all planned steps are spent when this is made.

    A step that was not planned raises before the optimiser uses its gradient, so that training
    stops. A planned step also pays for one with more noise or a smaller planned rate. What was
    planned and not used stays spent. A checkpoint carries the history for `get_epsilon`, and no
    right to further steps: to go on from it, plan the remaining steps with a new accountant.

    Args:
        ledger: Where to spend.
        planned: Noise multiplier, sample rate and number of steps, for each part of the training.
        what: What for, in a few public words, for the ledger's rows.
        expected_batch_size, records: As for `OpacusAccountant`; the planned rates are declared.

    Raises:
        ParameterError: nothing is planned, or a number is out of range.
        BudgetExceededError, LedgerError: the ledger refuses, or cannot be used. Nothing is spent.
    """

    def __init__(
        self,
        ledger: Ledger,
        planned: Sequence[Steps],
        what: str = "opacus",
        *,
        expected_batch_size: float,
        records: int | None = None,
    ) -> None:
        StepAccountant.__init__(
            self, (rate for _, rate, _ in planned), expected_batch_size, records
        )
        SingleUse.__init__(self)
        events = tuple(
            (step_event(noise, rate, self.adjacency), count) for noise, rate, count in planned
        )
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
            NoClaimError: the rate was not planned.
            ContractError: another process made this accountant.
        """
        # a forked copy would take the same planned steps again
        self._require_here(ContractError)
        self._require_declared_rate(sample_rate)
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
