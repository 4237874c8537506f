"""A new plugin, complete from the start: it installs, is admitted and passes the conformance suite.

The templates are ordinary files with `$name` and `$package` in place of the plugin's name.
"""

import enum
import re
from importlib import resources
from pathlib import Path
from string import Template

from dpcore.errors import SpecError, need

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")


class PluginKind(enum.StrEnum):
    """What a new plugin provides at first."""

    LEARNER = "learner"
    SUM = "sum"
    RELEASE = "release"
    INTERACTIVE = "interactive"
    BOUND = "bound"
    NOISE = "noise"
    MECHANISM = "mechanism"
    EVENT = "event"
    ACCOUNTANT = "accountant"
    FEATURES = "features"
    KERNEL = "kernel"


def write_plugin(name: str, kind: PluginKind, parent: Path) -> Path:
    """Write the folder `parent/name`; nothing that exists is touched.

    Raises:
        ParameterError: the name is not lower-case words joined by hyphens.
        SpecError: the folder exists, or cannot be written.
    """
    need(_NAME.match(name), "plugins new", "lower-case words joined by hyphens", "name", name)
    folder, package = parent / name, name.replace("-", "_")
    inner = folder / f"dpcore_{package}"
    templates = resources.files("dpcore.console.scaffold").joinpath("templates")
    common = templates.joinpath("common")
    # Files that every kind of plugin has, then those of this kind, which go into its package.
    places = {
        common.joinpath("pyproject.toml.tmpl"): folder / "pyproject.toml",
        common.joinpath("README.md.tmpl"): folder / "README.md",
        common.joinpath("test_conformance.py.tmpl"): folder / "tests" / "test_conformance.py",
    }
    # An event is tested by a mechanism that states it, so it comes with one.
    for template in templates.joinpath("mechanism" if kind == "event" else kind).iterdir():
        if template.name.endswith(".tmpl"):
            places[template] = inner / template.name.removesuffix(".tmpl")
    try:
        # Fails where the folder exists, so a second call never overwrites what somebody wrote.
        folder.mkdir(parents=True)
        for template, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            text = Template(template.read_text("utf-8")).substitute(name=name, package=package)
            place.write_text(text, "utf-8")
    except FileExistsError:
        raise SpecError(
            "it exists already; take another name or another --path", str(folder)
        ) from None
    except OSError as error:
        raise SpecError(f"cannot be written ({error.strerror})", place=str(folder)) from None
    return folder
