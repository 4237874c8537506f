"""Every guide runs as it is written: its specs, its commands in order, and its Python."""

import json
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import dpcore
from dpcore.console.app import app

ROOT = Path(__file__).parents[2]
INSTALL = "pip install . ./plugins/*"
CHECKER = "pip install ./plugins/verify"  # which needs nothing of dpcore


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def follow(name, skipped=()):
    """Write the specs of a guide, and run its commands; the exit code of each."""
    import shlex

    text = (ROOT / "docs" / f"{name}.md").read_text()
    for block in re.findall(r"^```yaml\n(dpcore: 1 # (\S+)\n.*?)^```$", text, re.M | re.S):
        Path(block[1]).write_text(block[0])
    codes = {}
    for line in re.findall(r"^\$ (.*)$", text, re.M):
        words = shlex.split(line)
        if words[:2] == ["python", "-m"]:
            subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True)
        elif words[0] == "dpcore" and line not in skipped:
            done = CliRunner().invoke(app, words[1:])
            assert done.exit_code == 0, (line, done.output)
            codes[line] = done.output
    return text, codes


@pytest.mark.slow
def test_months_are_published_out_of_one_ledger(home):
    follow("monthly")
    assert {p.name for p in Path("runs").iterdir()} == {"month-0001", "month-0002"}
    page = Path("runs/month-0001/report.html").read_text()
    assert "published 31 Jan 2026" in page
    assert json.loads(Path("runs/month-0001/record.json").read_text())["epsilon"] <= 0.4
    assert "month-0001, month-0002" in Path("clinic.html").read_text()
    # Twelve months fit in the year's budget, as the guide says.
    left = dpcore.Ledger.open(home / "clinic.ledger").left().mu
    spent = dpcore.Ledger.open(home / "clinic.ledger").total.start().left().mu ** 2 - left**2
    assert left**2 >= 10 / 2 * spent


@pytest.mark.slow
def test_a_model_is_exported_and_served(home):
    pytest.importorskip("sklearn", minversion="1.6")
    text, _ = follow("serve")
    page = Path("runs/risk-0001/report.html").read_text()
    assert page.index("Evaluation, paid for") < page.index("The guarantee in plain words")
    space = {"__name__": "serve"}
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    exec(compile(code, "serve.py", "exec"), space)
    model = {"__name__": "model"}
    exec(compile(Path("runs/risk-0001/model.py").read_text(), "model.py", "exec"), model)
    service = space["server"](model["predict"], 0)
    service.RequestHandlerClass.log_message = lambda *words: None
    threading.Thread(target=service.handle_request, daemon=True).start()
    (request,) = re.findall(r"`(\{\"age\".*?\})`", text)
    url = f"http://127.0.0.1:{service.server_address[1]}"
    with urllib.request.urlopen(urllib.request.Request(url, request.encode())) as answer:
        found = json.loads(answer.read())
    service.server_close()
    assert found == dpcore.load_run("runs/risk-0001").predict(json.loads(request)).tolist()
    values = {k: np.array(v).tolist() for k, v in json.loads(request).items()}
    Path("new.csv").write_text(
        f"{','.join(values)}\n{','.join(str(v[0]) for v in values.values())}\n"
    )
    with Path("new.csv").open() as new:
        printed = subprocess.run(
            [sys.executable, "runs/risk-0001/model.py"], stdin=new, capture_output=True, check=True
        )
    assert [float(printed.stdout)] == found


@pytest.mark.slow
def test_a_paper_is_reproduced_and_audited(home):
    pytest.importorskip("sklearn", minversion="1.6")
    page = (ROOT / "docs" / "attack-any-function.md").read_text()
    follow("attack-any-function", skipped=re.findall(r"^\$ (dpcore attack .*)$", page, re.M))
    page = Path("runs/ridge-0001/report.html").read_text()
    assert "runs of either" in page


def test_the_container_and_every_page_install_by_one_line():
    container = (ROOT / "Containerfile").read_text()
    assert INSTALL.replace("pip install", "pip install --no-cache-dir") in container
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("plugins/*/README.md")]
    for page in pages:
        # Of this repository: lines that name its folders.
        for line in re.findall(r"pip install [^`\n]*\./plugins[^`\n]*", page.read_text()):
            assert line.strip().rstrip(".") in (INSTALL, CHECKER), page.name


def test_the_scheduled_job_names_commands_and_options_that_exist():
    text = (ROOT / "docs" / "operations.md").read_text()
    (job,) = (
        yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)
    )
    lines = [step["run"] for step in job["jobs"]["publish"]["steps"] if "run" in step]
    lines += re.findall(r"dpcore --quiet run [^>]*", text)
    for line in lines:
        words = [word for word in line.split() if word != "--quiet"]
        shown = CliRunner().invoke(app, [words[1], "--help"]).output
        for option in re.findall(r"--[a-z]+", line.replace("--quiet", "")):
            assert option in shown, line


def search_rank(word):
    """The page with the word in the most headings, which a search puts first; then by its text."""
    found = []
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text()
        headings = " ".join(
            re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
        )
        found.append((headings.lower().count(word), text.lower().count(word), page.stem))
    return max(found)[2]


def test_a_search_for_the_median_leads_to_statistics():
    assert search_rank("median") == "statistics"


def test_the_readme_begins_with_an_example_and_leads_to_a_page_for_every_capability():
    text = (ROOT / "README.md").read_text()
    first = [
        text.index(words) for words in (INSTALL, "make demo", "make test", "$ dpcore run", "![")
    ]
    assert first == sorted(first)
    assert first[-1] < text.index("\n* ")
    assert text[: text.index("make test")].count("\n") < 30
    abilities = text.partition("## What it does")[2].partition("\n## ")[0]
    for item in re.findall(r"^\* (.*?)(?=^\* |\n\n)", abilities, re.M | re.S):
        assert "](docs/" in item, item
