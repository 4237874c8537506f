"""The tutorial, step by step, as its reader would: a plugin outside the tree, pip-installed."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "write-a-plugin.md"
FILE = re.compile(r"^File `([^`]+)`.*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def workplace(tmp_path):
    """The page's files, the people it speaks of, and an environment of its own."""
    for name, content in FILE.findall(PAGE.read_text()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    rng = np.random.default_rng(0)
    heights = rng.uniform(150, 200, 200)
    weights = np.clip(heights - 100 + rng.normal(0, 8, 200), 40, 120)
    rows = "\n".join(f"{h:.1f},{w:.1f}" for h, w in zip(heights, weights, strict=True))
    (tmp_path / "people.csv").write_text(f"height,weight\n{rows}\n")
    return tmp_path


def test_every_step_of_the_page_works(workplace):
    site = workplace / "site"
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(workplace / "config"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")])),
        "COLUMNS": "160",
    }

    def command(line, *, stdin="", code=0):
        program, *arguments = line.split()
        if program == "pip":
            # the reader's environment, without touching this one
            own = ["--no-deps", "--no-build-isolation", "--quiet", "--target", str(site)]
            full = [sys.executable, "-m", "pip", *arguments, *own]
        else:
            full = [sys.executable, "-c", "from dpcore.console import main; main()", *arguments]
        done = subprocess.run(
            full,
            cwd=workplace,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    lines = re.findall(r"^\$ (.+)$", PAGE.read_text(), re.MULTILINE)
    assert [line.split()[1] for line in lines] == [
        "install", "plugins", "plugins", "check", "run", "replay", "run", "replay",
    ]  # fmt: skip
    install, listing, enable, check, run, replay, run_counts, replay_counts = lines
    command(install)
    assert "installed, not admitted" in command(listing)
    refused = command(check, code=2)
    assert "bins.moments" in refused
    assert "dpcore plugins enable bins" in refused
    shown = command(enable, stdin="n\n", code=2)
    assert "dpcore-bins 1.0" in shown
    assert "not admitted" in command(listing)
    assert "bins.sums" in command(enable, stdin="y\n")
    assert "not admitted" not in command(listing)
    stated = command(check)
    assert "(2, 1e-06)-differentially private" in " ".join(stated.split())
    command(run)
    assert "identical bytes" in command(replay)
    with np.load(workplace / "runs" / "both-0001" / "public" / "model.npz") as model:
        assert {"ridge.coefficients", "sums.coefficients"} <= {*model.files}
    counted = command(run_counts)
    assert "Published statistics (BinCounts)." in counted
    assert " (95 %: " in counted
    assert "identical bytes" in command(replay_counts)
    with (workplace / "runs" / "counts-0001" / "public" / "release.csv").open() as table:
        rows = list(csv.DictReader(table))
    # Five bins of 14 cm, from 140: the heights are made above.
    exact = np.histogram(heights_of(workplace), bins=5, range=(140, 210))[0]
    assert [row["bin"] for row in rows] == [f"bin {number}" for number in range(5)]
    assert all(
        float(row["low"]) <= count <= float(row["high"])
        for row, count in zip(rows, exact, strict=True)
    )


def heights_of(workplace):
    with (workplace / "people.csv").open() as table:
        return [float(row["height"]) for row in csv.DictReader(table)]
