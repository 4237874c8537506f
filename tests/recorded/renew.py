"""Recorded runs: small specs, synthetic people, known randomness, and what came out of them.

`OPENBLAS_NUM_THREADS=1 python tests/recorded/renew.py [NAME ...]` records them again, or only those
named. Everything goes through the installed command `dpcore`, so that no module behind it is known.
"""

from __future__ import annotations

import contextlib
import contextvars
import csv
import io
import json
import os
import platform
import shutil
import sys
import tempfile
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
NAMES = sorted(path.parent.name for path in HERE.glob("*/spec.yaml"))
SPEC, ARRAYS, NUMBERS = "spec.yaml", "arrays.npz", "numbers.json"
PEOPLE, POINTS = "people.csv", "points.csv"
SEED = 2024  # of the rehearsal's secret randomness

Arrays = dict[str, NDArray[Any]]


def machine() -> dict[str, Any]:
    """What the last bits of a linear solve depend on, next to dpcore."""
    try:
        from threadpoolctl import threadpool_info  # with scikit-learn, which is an extra
    except ImportError:
        return {}
    loaded = [library for library in threadpool_info() if library["user_api"] == "blas"]
    wide = np.show_config(mode="dicts")["SIMD Extensions"]
    kernels = {f"{one['internal_api']} {one.get('architecture')}" for one in loaded}
    return {
        "blas": " and ".join(sorted(kernels)),
        "threads": max((one["num_threads"] for one in loaded), default=0),
        "processor": " ".join([platform.machine(), *wide["baseline"], *wide.get("found", [])]),
        "libc": " ".join(platform.libc_ver()),
        **{name: metadata.version(name) for name in ("numpy", "scipy")},
    }


@attrs.frozen(kw_only=True, eq=False)
class Recording:
    """What a run published and what it was priced at.

    Args:
        answers: Every answer, by `RELEASE.ORDER.QUERY`.
        models: Every array of every model, by `RELEASE.ARRAY`.
        numbers: Epsilon, delta, and each query's sensitivity, share and noise.
        machine: Where it ran.
    """

    answers: Arrays
    models: Arrays
    numbers: dict[str, Any]
    machine: dict[str, Any]


def people() -> dict[str, list[Any]]:
    """Sixty synthetic people, by integer arithmetic only; hours are quarters, exact in binary."""
    ages = [18 + (37 * i + 11 * i * i) % 73 for i in range(60)]
    hours = [(53 * i + 7 * i**3) % 161 / 4 for i in range(60)]
    smokers = ["yes" if i * (i + 1) // 2 % 3 == 0 else "no" for i in range(60)]
    costs = [
        10 + age // 2 + 20 * (smoker == "yes") + 29 * i % 17
        for i, (age, smoker) in enumerate(zip(ages, smokers, strict=True))
    ]
    kinds = ["abc"[(age // 20 + 7 * i % 2) % 3] for i, age in enumerate(ages)]
    return {"age": ages, "hours": hours, "smoker": smokers, "cost": costs, "kind": kinds}


def points() -> dict[str, list[Any]]:
    """Six public points, the last the same as the first."""
    return {
        "age": [20, 35, 50, 65, 80, 20],
        "hours": [0.0, 7.5, 40.0, 12.25, 33.0, 0.0],
        "smoker": ["no", "yes", "no", "no", "yes", "no"],
    }


def lay_out(name: str, folder: Path) -> Path:
    """The spec of a recording and the files it reads, in a folder; returns the spec's path."""
    shutil.copy(HERE / name / SPEC, folder)
    for file, table in ((PEOPLE, people()), (POINTS, points())):
        with (folder / file).open("w", newline="", encoding="utf-8") as opened:
            rows = csv.writer(opened, lineterminator="\n")
            rows.writerow(table)
            rows.writerows(zip(*table.values(), strict=True))
    return folder / SPEC


def run_command(*words: object) -> tuple[int, str, str]:
    """Run the installed command `dpcore` in this process: exit code, output, errors."""
    (script,) = metadata.entry_points(group="console_scripts", name="dpcore")
    output, wrong = io.StringIO(), io.StringIO()
    code: Any = 0
    with (
        mock.patch.object(sys, "argv", ["dpcore", *map(str, words)]),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(wrong),
    ):
        try:
            # as in a process of its own: what a command sets of its context stays with it
            contextvars.copy_context().run(script.load())
        except SystemExit as left:
            code = left.code
    return int(code or 0), output.getvalue(), wrong.getvalue()


def replay(name: str, folder: Path) -> Recording:
    """Rehearse a recording's spec in an empty folder."""
    spec = lay_out(name, folder)
    home = {"XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with mock.patch.dict(os.environ, home):
        code, _, wrong = run_command("run", spec, "--rehearsal", SEED, "--runs", folder / "runs")
    if code:
        raise AssertionError(f"{name}: {wrong}")
    run = folder / "runs" / f"{spec.stem}-0001" / "operator" / "rehearsal"
    plan = json.loads((run / "spec.lock.json").read_text())["plan"]
    return Recording(
        answers=_asked(run / "answers.npz"),
        models=_arrays(run / "model.npz"),
        numbers={
            "epsilon": plan["guarantee"]["epsilon"],
            "delta": plan["guarantee"]["delta"],
            "queries": {
                f"{release}.{query['query']}": {
                    **{key: query[key] for key in ("at_most", "sensitivity", "mechanism")},
                    "share": query["budget_fraction"],
                }
                for release, queries in plan["releases"].items()
                for query in queries
            },
            "look": {query["query"]: query["mechanism"] for query in plan["paid_evaluation"]},
        },
        machine=machine(),
    )


def _asked(path: Path) -> Arrays:
    """Every answer of a run by itself: `RELEASE.FIRSTxCOUNT.QUERY` holds COUNT of them."""
    arrays, places = _arrays(path), Counter[str]()
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, array in arrays.items():
        release, first, *query = name.split(".", 2)
        if query:
            several = array if "x" in first else [array]
            groups.setdefault(release, []).append((query[0], iter(several)))
    found: Arrays = {}
    for release, parts in groups.items():
        order = arrays.get(f"{release}.order")
        turns = range(len(parts)) if order is None else order.tolist()
        for turn in turns:
            for value in parts[turn][1] if order is None else [next(parts[turn][1])]:
                found[f"{release}.{places[release]:06d}.{parts[turn][0]}"] = value
                places[release] += 1
    return found


def stored(name: str) -> Recording:
    """What was recorded."""
    arrays = _arrays(HERE / name / ARRAYS)
    numbers = json.loads((HERE / name / NUMBERS).read_text())
    answers: Arrays = {}
    taken: Counter[str] = Counter()
    for query, count in numbers.pop("asked"):
        release, _, asked = query.partition(".")
        for answer in arrays[f"answers/{query}"][taken[query] : taken[query] + count]:
            order = sum(path.startswith(f"{release}.") for path in answers)
            answers[f"{release}.{order:06d}.{asked}"] = answer
        taken[query] += count
    models = {
        path.removeprefix("models/"): array
        for path, array in arrays.items()
        if path.startswith("models/")
    }
    where = numbers.pop("machine")
    return Recording(answers=answers, models=models, numbers=numbers, machine=where)


def store(name: str, recording: Recording) -> None:
    """Write a recording next to its spec: answers to one query in one array, in order of asking."""
    grouped: dict[str, list[NDArray[Any]]] = {}
    asked: list[list[Any]] = []
    for path, answer in recording.answers.items():
        release, _, query = path.split(".", 2)
        query = f"{release}.{query}"
        grouped.setdefault(query, []).append(answer)
        if not asked or asked[-1][0] != query:
            asked.append([query, 0])
        asked[-1][1] += 1
    arrays = {f"answers/{query}": np.stack(answers) for query, answers in grouped.items()}
    arrays |= {f"models/{path}": array for path, array in recording.models.items()}
    np.savez_compressed(HERE / name / ARRAYS, allow_pickle=False, **arrays)
    numbers = {**recording.numbers, "asked": asked, "machine": recording.machine}
    (HERE / name / NUMBERS).write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")


def _arrays(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def main(names: list[str]) -> None:
    """Record the given runs again, or all of them, with one thread as in `make test`."""
    if machine().get("threads") != 1:
        raise SystemExit("recordings need scikit-learn and one thread: set OPENBLAS_NUM_THREADS=1")
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            store(name, replay(name, Path(folder)))
        print(f"recorded {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
