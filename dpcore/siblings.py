"""Import what was asked for by name: a package's names, and what siblings of the core have.

Siblings are the distributions of this repository that stand next to the core. No guarantee rests on
a tool among them, and the core imports none but by a name that was asked for. Their names are on no
package index, where a stranger could own them: what is missing is installed from a clone, with
every path named.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

INSTALL = "pip install . ./plugins/*"
"""Run in a clone of dpcore, it installs the core and all siblings, and asks no index for them."""


def missing(subject: str, plugin: str) -> str:
    """Return one line that names the distribution that brings something, and how to install it."""
    return f"{subject} is brought by dpcore-{plugin}, which is not installed: {INSTALL} in a clone"


def sibling(plugin: str, module: str, subject: str) -> ModuleType:
    """Import `module` of a sibling, for the `subject` that was asked for.

    Raises:
        MissingPluginError: the sibling is not installed; it says how.
    """
    package = f"dpcore_{plugin.replace('-', '_')}"
    try:
        return import_module(f"{package}.{module}")
    except ModuleNotFoundError as error:
        # A module that is missing inside an installed sibling is a defect of its own.
        if error.name != package:
            raise
        from dpcore.errors import MissingPluginError  # `import dpcore` costs next to nothing

        raise MissingPluginError(missing(subject, plugin)) from None


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported when used.

    `homes` maps each name to its module, a path below `dpcore`.
    """

    def get(name: str) -> Any:
        if name not in homes:
            from dpcore.errors import near

            hint = "" if name.startswith("_") else near(name, homes)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        return getattr(import_module(f"dpcore.{homes[name]}"), name)

    return get, lambda: sorted([*vars(sys.modules[package]), *homes])
