"""A plugin in a folder, not yet installed: for its author, who runs its code anyway."""

import importlib
import sys
import tomllib
from pathlib import Path
from types import ModuleType

from dpcore.errors import RegistryError, need
from dpcore.registry.installations import GROUP


def module_in(folder: Path) -> ModuleType:
    """The module that the folder's `pyproject.toml` announces, or its only package.

    Raises:
        RegistryError: there is none, it cannot be imported, or it names no component.
    """
    root, name = _locate(folder)
    # first, so that an installed copy of the plugin is not tested in its place
    sys.path.insert(0, str(root))
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        lines = str(error).splitlines() or [""]
        raise RegistryError(
            f"{folder}: {name} cannot be imported: {type(error).__name__}: {lines[0]}"
        ) from None
    need(
        any(name == "provides" or name.startswith("dpcore_") for name in vars(module)),
        RegistryError,
        f"{folder}: {name} names no component: it needs a table `provides`, or a function such "
        "as dpcore_learners, marked with hookimpl (`dpcore plugins new NAME` writes one)",
    )
    return module


def _locate(folder: Path) -> tuple[Path, str]:
    """Where to import from, and what."""
    project = folder / "pyproject.toml"
    if project.is_file():
        try:
            facts = tomllib.loads(project.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RegistryError(f"{project}: {str(error).splitlines()[0]}") from None
        points = facts.get("project", {}).get("entry-points", {}).get(GROUP, {})
        if len(points) == 1:
            (value,) = points.values()
            source = folder / "src"
            return (source if source.is_dir() else folder), str(value).partition(":")[0]
    if (folder / "__init__.py").is_file():
        return folder.resolve().parent, folder.resolve().name
    packages = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    packages = [name for name in packages if name not in ("tests", "docs")]
    if len(packages) == 1:
        return folder, packages[0]
    raise RegistryError(
        f"{folder}: needs one entry point under {GROUP!r} in pyproject.toml, or one package, has "
        f"{', '.join(packages) or 'none'}"
    )
