"""Components by name, each imported when it is asked for: a name is checked without its code."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import attrs


@attrs.frozen(eq=False)
class LazyMapping(Mapping[str, Any]):
    """A mapping from names to classes or functions, of which it knows where they are.

    Args:
        homes: By name, the module and what is meant in it.
    """

    homes: Mapping[str, tuple[str, str]]

    def __getitem__(self, name: str) -> Any:
        module, component = self.homes[name]
        return getattr(import_module(module), component)

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)
