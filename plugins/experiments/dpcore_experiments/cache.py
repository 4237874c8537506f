"""What an experiment found as a file and a picture, for the operator only."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from dpcore.published.files import new_folder, private_folder, replace_file
from dpcore_experiments.compare import Cell
from dpcore_experiments.experiment import Experiment

WARNING = "NOT PRIVATE: every number here shows the records; keep it"


def as_dict(
    experiment: Experiment, cells: Sequence[Cell], key: int, quick: bool, audit: int
) -> dict[str, Any]:
    """Everything that is printed about an experiment, as plain values for JSON."""
    text = experiment.text
    return {
        "warning": WARNING,
        "experiment": experiment.name,
        "source": text.source,
        "reading": text.reading,
        "key": key,
        "quick": quick,
        "audit": audit,
        "differs": [msgspec.structs.asdict(difference) for difference in text.differs],
        "not_reproducible": text.not_reproducible,
        "substitute": text.substitute,
        "cells": [{**attrs.asdict(cell), "within": cell.within} for cell in cells],
    }


def keep(
    experiment: Experiment,
    cells: Sequence[Cell],
    *,
    key: int,
    quick: bool,
    audit: int,
    runs: Path,
) -> tuple[Path, str]:
    """Return a new folder with `operator/experiment.json` and, where matplotlib is installed, a
    picture.

    Returns the folder of the files, and why there is no picture if there is none.
    """
    # Never an old folder: a result must not replace another one's file.
    folder = new_folder(runs, experiment.name.replace("/", "-"))
    operator = private_folder(folder / "operator")
    data = msgspec.json.format(msgspec.json.encode(as_dict(experiment, cells, key, quick, audit)))
    replace_file(operator / "experiment.json", data + b"\n", private=True)
    try:
        picture = drawn(experiment, cells)
    except ImportError:
        return operator, "no picture: it needs matplotlib (pip install matplotlib)"
    replace_file(operator / "experiment.svg", picture, private=True)
    return operator, ""


def drawn(experiment: Experiment, cells: Sequence[Cell]) -> bytes:
    """Return the paper's curves dashed, and what was found with its standard deviations; an SVG.

    Raises:
        ImportError: matplotlib is not installed.
    """
    # Imports stand inside: without matplotlib everything else still works.
    import io

    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    measured = {
        "mse": "mean squared test error",
        "error_rate": "proportion of wrong classes",
        "risk_gap": "gap of excessive risk",
        "parity": "distance of two groups' predictions",
    }
    axes = figure.add_subplot(
        xlabel=experiment.text.sweep.over, ylabel=measured[experiment.text.metric]
    )
    axes.set_title(f"{experiment.name}, reading {experiment.text.reading}: NOT PRIVATE")
    for number, series in enumerate(experiment.text.series):
        series_cells = sorted(
            (c for c in cells if c.series == series.name), key=lambda cell: cell.at
        )
        colour = f"C{number % 10}"
        values = [cell.at for cell in series_cells]
        means, sds = [cell.mean for cell in series_cells], [cell.sd for cell in series_cells]
        axes.errorbar(values, means, yerr=sds, color=colour, marker="o", label=series.name)
        # The paper's numbers where it shows some, dashed in the series' colour.
        points = [(cell.at, cell.paper) for cell in series_cells if cell.paper is not None]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, linestyle="--")
    axes.set_yscale("log")
    axes.legend(fontsize="small")
    file = io.BytesIO()
    # No date: equal results give equal bytes.
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
