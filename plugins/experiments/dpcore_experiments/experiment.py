"""An experiment: the file, read and checked, with the methods that it names."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from dpcore.errors import ParameterError, RegistryError, SpecError, below, nearest, need, shown
from dpcore.learners.statement import Statement
from dpcore.registry.plugin_files import find_entry, shipped
from dpcore.registry.registry import Registry
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import Node, locate_errors, read
from dpcore_experiments.grammar import ExperimentSpecText, ExperimentText

_TIMES = re.compile(r"(?:(?P<times>[0-9.]+)\*)?m(?:(?P<plus>[+-][0-9]+))?\Z")
_OVER = re.compile(r"(?P<over>[0-9.]+)/(?:(?P<by>[0-9]+))?m\Z")


@attrs.frozen(kw_only=True, eq=False)
class Experiment:
    """One table or figure.

    Args:
        name: PAPER/ITEM.
        text: The file.
        methods: What it names, by name.
        statements: What it names, by name.
    """

    name: str
    text: ExperimentText
    methods: Mapping[str, Callable[..., Any]]
    statements: Mapping[str, Statement]


def load_experiment(name: str, registry: Registry | None = None) -> Experiment:
    """Return an experiment that an admitted plugin ships.

    Raises:
        RegistryError: no such experiment, or a method is missing.
        SpecError: the file is wrong, at file:line:column.
    """
    registry = Registry.default() if registry is None else registry
    return experiment_of(
        read(find_entry(registry, "experiments", "experiment", name)), name, registry
    )


def experiments(registry: Registry | None = None) -> dict[str, Path]:
    """Return every shipped experiment by name."""
    return shipped(Registry.default() if registry is None else registry, "experiments")


def experiment_of(node: Node, name: str, registry: Registry) -> Experiment:
    """Return the experiment of a parsed file, with its methods and statements resolved.

    Raises:
        SpecError: the file is wrong, at file:line:column.
        RegistryError: no admitted plugin has a method or a statement that it names.
    """
    with locate_errors(node):
        text = convert(node, ExperimentSpecText).experiment
        # Errors carry their place in the file: `below` names the keys on the way.
        with below("experiment"):
            return Experiment(
                name=name,
                text=text,
                statements=_statements(text, registry),
                methods=_methods(text, registry),
            )


def _statements(text: ExperimentText, registry: Registry) -> dict[str, Statement]:
    available: dict[str, Statement] = shipped(registry, "theory")
    statements = {}
    for number, series in enumerate(text.series):
        with below("series", number):
            need(
                (series.fit is None) != (series.statement is None),
                SpecError,
                "needs data and fit, or statement, and not both",
            )
            if series.statement is not None:
                with below("statement"):
                    name = series.statement.get("name")
                    if name not in available:
                        raise RegistryError(
                            f"no admitted plugin has statement {shown(name)}"
                            f"{nearest(str(name), available)}",
                            "name",
                        )
                    # The file must say which one: the paper's own statement may be wrong.
                    need(
                        series.statement.get("which") in ("printed", "corrected"),
                        SpecError,
                        "needs printed or corrected",
                        "which",
                    )
                    statements[name] = available[name]
    return statements


def _methods(text: ExperimentText, registry: Registry) -> dict[str, Callable[..., Any]]:
    available: dict[str, Callable[..., Any]] = shipped(registry, "methods")
    methods: dict[str, Callable[..., Any]] = {}
    for name, data in text.data.items():
        with below("data", name):
            need(
                (data.csv is None) != (data.generator is None),
                SpecError,
                "needs csv or generator, and not both",
            )
            if data.generator is not None:
                with below("generator"):
                    methods |= _method(data.generator, available)
    for number, series in enumerate(text.series):
        with below("series", number):
            need(
                series.fit is None or series.data in text.data,
                SpecError,
                f"no data are called so{nearest(series.data, text.data)}",
                "data",
            )
            # Every method is resolved now, so that a long run cannot fail at its last series.
            for key, component in (("fit", series.fit), ("noise", series.noise)):
                if component is not None:
                    with below(key):
                        methods |= _method(component, available)
            names = [entry.name for entry in text.series]
            # Other series are named by their printed names.
            for key, goals in (("approaches", [series.approaches]), ("below", series.below)):
                for goal in filter(None, goals):
                    need(
                        goal in names,
                        SpecError,
                        f"no series is called so{nearest(goal, names)}",
                        key,
                    )
            sweeps_epsilon = text.sweep.over == "epsilon" and series.noise is not None
            need(
                (series.noise is None) == (series.epsilon is None and not sweeps_epsilon),
                SpecError,
                "noise and epsilon go together",
                "epsilon",
            )
            study = series.independent
            # A row of another length would be compared at the wrong values of the sweep.
            rows: dict[str, list[float | None]] = {"paper": series.paper}
            if study is not None:
                rows["independent.mean"] = study.mean
                rows |= {} if study.sd is None else {"independent.sd": study.sd}
            for key, row in rows.items():
                need(
                    len(row) == len(text.sweep.at),
                    SpecError,
                    f"needs {len(text.sweep.at)} numbers, one for each value of the sweep, "
                    f"got {len(row)}",
                    key,
                )
    return methods


def _method(
    component: Mapping[str, Any], available: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    name = component.get("name")
    if not isinstance(name, str):
        raise SpecError("the key 'name' is missing")
    need(
        name in available,
        RegistryError,
        f"no admitted plugin has method {name!r}{nearest(name, available)}",
        "name",
    )
    return {name: available[name]}


def fields(component: Mapping[str, Any], records: int) -> dict[str, Any]:
    """Return the fields of a component without its name, expressions in m put in."""
    return {key: _value(key, value, records) for key, value in component.items() if key != "name"}


def _value(key: str, value: Any, records: int) -> Any:
    """Return a number in m: `a*m+b` or `a/m`, or `a/bm` for a/(b m); whatever else it is,
    itself.
    """
    if not isinstance(value, str) or "m" not in value:
        return value
    if match := _TIMES.match(value):
        number = float(match["times"] or 1) * records + int(match["plus"] or 0)
        return int(number) if number == int(number) else number
    if match := _OVER.match(value):
        return float(match["over"]) / (int(match["by"] or 1) * records)
    # It begins as a number and has an m: a wrong expression rather than a name.
    need(not value[0].isdigit(), ParameterError, "an expression", "a*m+b or a/m", key, value)
    return value
