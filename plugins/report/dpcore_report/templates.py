"""Templates of reports: every text that they show is escaped."""

from importlib import resources
from typing import Any

import jinja2


def filled(template: str, **values: Any) -> str:
    """Return a template of this folder with what it shows."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_source),
    )
    return environment.get_template(template).render(**values)


def _source(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
