"""Fills the page of components: what a spec can name with the plugins of this repository."""

from importlib import import_module
from pathlib import Path

from dpcore import Registry
from dpcore.registry.kinds import COMPONENTS

_PLACE = "<!-- components -->"


def on_page_markdown(markdown, **_):
    return markdown.replace(_PLACE, _components()) if _PLACE in markdown else markdown


def _components():
    plugins = sorted(Path(__file__).parents[2].glob("plugins/*/dpcore_*"))
    registry = Registry.of(*(import_module(folder.name) for folder in plugins))
    parts = []
    for kind in COMPONENTS:
        parts.append(f"## {kind.name.capitalize()}s\n")
        for name in sorted(registry.names(kind)):
            component = registry.component(kind, name)
            parts.append(
                f"::: {component.__module__}.{component.__qualname__}\n"
                "    options:\n"
                f'      heading: "{name}"\n'
                f'      toc_label: "{name}"\n'
                "      heading_level: 3\n"
                "      members: false\n"
                "      show_bases: false\n"
                "      show_symbol_type_heading: false\n"
                "      show_symbol_type_toc: false\n"
            )
    return "\n".join(parts)
