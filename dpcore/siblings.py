"""Siblings: the distributions of this repository that stand beside the core.

No guarantee rests on a tool among them, and the core imports none but by a name that was asked for.
Their names are on no package index, where a stranger could own them: what is missing is installed
from a clone, with every path named.
"""

from importlib import import_module
from types import ModuleType

INSTALL = "pip install . ./plugins/*"
"""Run in a clone of dpcore, it installs the core and all siblings, and asks no index for them."""


def missing(subject: str, plugin: str) -> str:
    """One line that says which distribution brings something, and how it is installed."""
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
