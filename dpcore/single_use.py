"""`single_use`: objects that serve once, in their own process: secret randomness, reservations,
oracles.

Two of a kind would publish different statistics with the same noise, and the difference of the two
releases would be the exact difference of the statistics. So such a thing is never copied, pickled
or used in a forked process, before or after it began to serve.
"""

import os
from typing import Any

from dpcore.errors import ContractError, DpcoreError, need

_forks: list[
    None
] = []  # one entry per fork between this process and the first: a pid may come back

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _forks.append(None))


def _process() -> tuple[int, int]:
    """Identify this process uniquely among those of this program's family."""
    return os.getpid(), len(_forks)


class NeverCopied:
    """Base of what holds records, or secrets: Python neither copies nor pickles it."""

    __slots__ = ()

    # Every way in which Python duplicates an object goes through one of these.
    def __copy__(self) -> Any:
        self._refuse()

    def __deepcopy__(self, memo: Any) -> Any:
        self._refuse()

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._refuse()

    def __reduce__(self) -> Any:
        self._refuse()

    def __getstate__(self) -> Any:
        self._refuse()

    def _refuse(self) -> Any:
        raise TypeError("records are not copied or pickled: they stay in the process that has them")


class SingleUse(NeverCopied):
    """Base of what serves once. Any threads of one process may share it."""

    def __init__(self) -> None:
        self._home_process, self._tokens = _process(), list[object]()

    def _serve(self, refusal: str) -> None:
        """Begin to serve.

        Raises:
            ContractError: it has begun before, or in another process; `refusal` says so.
        """
        # A forked process holds the same key and would repeat the noise.
        self._require_here(ContractError)
        token = object()
        self._tokens.append(token)  # atomic: of two threads one comes first
        need(self._tokens[0] is token, ContractError, refusal)

    def _require_here(self, error: type[DpcoreError]) -> None:
        """Raise `error` in any process but the one that made it."""
        if self._home_process != _process():
            raise error(
                f"{_name(self)} is closed: it was opened in another process, and serves there only"
            )

    def _refuse(self) -> Any:
        raise TypeError(f"{_name(self)} is not copied or pickled: a second would repeat its noise")


def _name(thing: SingleUse) -> str:
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in type(thing).__name__).split()
    return f"this {words[-1] if words else 'thing'}"
