"""The page of the whole idea computes by hand what a run publishes."""

import re
from pathlib import Path

import pytest

import dpcore

ROOT = Path(__file__).parents[2]
SPEC = """
dpcore: 1
data:
  source: people.csv
  domain: {records: private, columns: {age: [0, 120]}}
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
releases:
  - name: adults
    learner: {name: statistics.count, where: {age: {from: 18}}}
    mechanism: gaussian
"""


@pytest.fixture
def page():
    text = (ROOT / "docs/the-whole-idea.md").read_text()
    values = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(block, values)
    return values


def test_the_page_computes_what_a_run_publishes(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(SPEC)
    Path("people.csv").write_text("age\n" + "".join(f"{age}\n" for age in page["ages"]))
    run = dpcore.run("spec.yaml", rehearsal=7)
    (figures,) = run.published.tables.values()
    (row,) = figures.rows()
    _, answer, low, high = row
    assert answer == page["answer"]  # bit for bit
    # The run takes the normal quantile, which is never below the sum of the tail: two steps.
    assert (low, high) == pytest.approx((page["table"]["low"], page["table"]["high"]), abs=0.002)
    guarantee = dpcore.load_spec("spec.yaml").price().guarantee
    assert guarantee.epsilon == pytest.approx(page["claimed"], rel=1e-12)
    assert page["sentence"] in " ".join(guarantee.paragraph().split())


def test_the_page_has_no_option_and_two_imports_of_dpcore(page):
    text = (ROOT / "docs/the-whole-idea.md").read_text()
    assert len(re.findall(r"^from dpcore", text, re.M)) == 2
    assert sum(len(b.splitlines()) for b in re.findall(r"```python\n(.*?)```", text, re.S)) <= 200


def test_every_file_that_the_architecture_names_exists():
    text = (ROOT / "docs/architecture.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?|[a-z_]+\.py)`", text))
    assert len(named) > 30
    places = (ROOT, ROOT / "dpcore")
    assert [name for name in named if not any((p / name).exists() for p in places)] == []
