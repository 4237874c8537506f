"""Every exception that dpcore raises on purpose.

An error says where, what was needed, what came instead and the way out. It may show a parameter;
it never shows a record: tracebacks and messages are not private. `exit_code` is what the command
line returns for it.
"""

from typing import ClassVar


class DpcoreError(Exception):
    """Base of everything raised on purpose."""

    exit_code: ClassVar[int] = 1


class SpecError(DpcoreError):
    """A spec or a command line is wrong: `where` is FILE:LINE:COLUMN or a dotted path."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, where: str | None = None) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where


class ParameterError(SpecError, ValueError):
    """A parameter is outside what its component accepts.

    Args:
        owner: The component or function, by the name its user knows.
        needed: What it accepts, in words.
        field: Name of the parameter.
        got: The value that came.
    """

    def __init__(self, owner: str, needed: str, field: str, got: object) -> None:
        super().__init__(f"{owner} needs {needed}, got {field}={got!r}")
        self.owner = owner
        self.needed = needed
        self.field = field
        self.got = got


class RegistryError(SpecError):
    """A component or plugin is unknown, not admitted, broken or clashes with another."""


class NoClaimError(DpcoreError):
    """No guarantee can be stated: a bound refuses, is refuted, or no noise meets the budget."""

    exit_code: ClassVar[int] = 3


class AdjacencyError(NoClaimError):
    """A claim for one adjacency was asked to serve another that it does not cover."""


class UndeclaredError(NoClaimError):
    """A public fact is needed that the domain does not hold: the plan refuses who needs it."""


class UnfitTargetError(UndeclaredError):
    """A learner or bound for ranges and two classes was given a target of several classes."""


class UnknownCountError(UndeclaredError):
    """The exact number of records was asked for, and it is not public."""


class CoinsWithheldError(DpcoreError):
    """Public coins were read while a plan is priced without them."""


class SourceError(DpcoreError):
    """The records are missing, unreadable or do not fit the declared domain."""

    exit_code: ClassVar[int] = 5


class ReleaseError(DpcoreError):
    """A run failed after the records were opened: nothing is released, the budget is spent."""


class ContractError(ReleaseError):
    """A learner or mechanism broke what its interface promises (asked an unplanned query, ...)."""


class ExhaustedError(DpcoreError):
    """An oracle has answered every question that was paid for; asking spends nothing more."""


class CertificateError(ReleaseError):
    """A solver's certificate does not reach its public tolerance; both figures are private.

    Args:
        owner: The solver. distance: What was certified. tolerance: What was needed.
    """

    def __init__(self, owner: str, distance: float, tolerance: float) -> None:
        super().__init__(f"{owner}: the solution could not be certified to its public tolerance")
        self.owner = owner
        self.distance = distance
        self.tolerance = tolerance


class ReplayError(DpcoreError):
    """A run folder does not replay to itself."""
