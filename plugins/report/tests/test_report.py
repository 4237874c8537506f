"""A report shows what is public, and nothing that a page could load or run."""

import json
import re
import shutil
from datetime import date
from html.parser import HTMLParser

import attrs
import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from scipy.stats import norm

import dpcore
from dpcore.claims.plan.planned_query import failure_over_randomness
from dpcore.console.app import app
from dpcore.errors import NoClaimError, ReplayError
from dpcore.guarantee import Assumption
from dpcore.sensitivity import OverRandomness
from dpcore_models.learners.even_noise import EvenNoise

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from dpcore_report import page

EVIL = "<script>alert('1')</script>"
LOADING = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "video", "image"}
SPEC = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "domain": {
            "records": "private",
            "columns": {"ward": {"categories": [EVIL, 'a"&b']}, "age": [0, 100]},
        },
    },
    "adjacency": "add_remove",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "releases": [
        {
            "name": "wards",
            "learner": {"name": "statistics.histogram", "column": "ward"},
            "mechanism": {"name": "gaussian"},
        }
    ],
}


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "wards.yaml"
    path.write_text(yaml.safe_dump(SPEC, sort_keys=False))
    return path


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    return {
        "ward": np.where(random.uniform(size=60) < 0.3, EVIL, 'a"&b').tolist(),
        "age": random.uniform(0, 100, 60),
    }


@pytest.fixture(scope="module")
def run(spec, table):
    return dpcore.run(spec, table=table, runs=spec.parent / "runs")


@pytest.fixture(scope="module")
def text(run):
    return page.report(run.folder).decode()


class Seen(HTMLParser):
    """Tags, attributes and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.pairs, self.words = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.pairs += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


def test_nothing_is_loaded_and_nothing_runs(text):
    seen = Seen(text)
    assert not seen.tags & LOADING
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    for name, value in seen.pairs:
        assert not name.startswith("on")
        assert name not in ("src", "srcset", "action", "data")
        if name.endswith("href"):
            assert value.startswith("#")
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in seen.pairs


def test_every_text_is_escaped(text, run):
    assert EVIL not in text
    words = Seen(text).words
    assert EVIL in words  # as a cell of the table
    assert 'a"&b' in words
    assert any(EVIL in premise for premise in run.guarantee.basis.premises)


def test_names_inside_the_pictures_are_unique(text):
    ids = [value for name, value in Seen(text).pairs if name == "id"]
    assert ids
    assert len(ids) == len({*ids})


def test_the_page_says_what_the_guarantee_and_the_table_say(text, run):
    words = " ".join(" ".join(Seen(text).words).split())
    assert " ".join(run.guarantee.paragraph().split()) in words
    for value in run.table()["estimate"]:
        assert f"{value:.6g}" in words
    mu = 1 / run.lock.plan["releases"]["wards"][0]["mechanism"]["noise_multiplier"]
    (stated,) = re.findall(r"right in at most ([0-9.]+) % of cases", words)
    assert 0 <= float(stated) - 100 * norm.cdf(mu / 2) < 0.3


def test_equal_public_folders_give_equal_bytes(run, text, tmp_path, monkeypatch):
    other = tmp_path / "another name"
    shutil.copytree(run.kept, other / "public")
    (other / "operator").mkdir()
    (other / "operator" / "run.json").write_text('{"seconds": 12}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert page.report(other).decode() == text


def test_results_come_before_the_guarantee_is_explained(text):
    places = [text.index(words) for words in (
        "<h1>", "epsilon = 1, delta = 1e-06", "<nav", "What was released<", "<table", "<svg",
        "The guarantee in plain words", "Queries and their noise<", "The guarantee in full",
    )]  # fmt: skip
    assert places == sorted(places)
    anchors = re.findall(r'<a href="#(\w+)"', text)
    assert anchors == [name for name in re.findall(r'<h2 id="(\w+)"', text) if name in anchors]


def test_the_day_and_the_name_are_told_by_whoever_makes_the_page(run, text):
    report = page.report(
        run.folder, name="r<1>", published=date(2026, 3, 5), title="Ward <b>"
    ).decode()
    assert "Run r&lt;1&gt;, published 5 Mar 2026, dpcore" in report
    assert "<h1>Ward &lt;b&gt;</h1>" in report
    assert "5 Mar 2026" not in text


PAID = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 40, columns: {a: [-1, 1], b: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: linear.sufficient_statistics, features: identity}
  mechanism: {name: gaussian, noise: float}
evaluate: {holdout: 0.5, metrics: [mse], private: {epsilon: 0.5}}
"""


def test_a_paid_evaluation_and_noise_in_floats_are_told(tmp_path, monkeypatch):
    (tmp_path / "paid.yaml").write_text(PAID)
    random = np.random.default_rng(0)
    people = {name: random.uniform(-1, 1, 40) for name in "aby"}
    made = dpcore.run(tmp_path / "paid.yaml", table=people, runs=tmp_path)
    words = " ".join(" ".join(Seen(page.report(made.folder).decode()).words).split())
    (value,) = made.evaluation["release"].values()
    assert f"{value:.6g}" in words
    assert "release: the parameters of a model" in words
    intervals = EvenNoise(std=0.5, longest=1.0)
    report = attrs.evolve(
        made, models={"release": attrs.evolve(made.model, noise_intervals=intervals)}
    )
    monkeypatch.setattr(page, "replay", lambda *args, **kwargs: report)
    words = " ".join(" ".join(Seen(page.report(made.folder).decode()).words).split())
    assert "coefficients +- 0.98 each" in words
    assert "noise only" in words
    assert "low bits are not covered" in words
    assert "Laplace(" in words


def test_what_is_not_proved_is_told_first_and_named(run, monkeypatch):
    assumed = (Assumption("honest", "no one <lies>"),)
    report = attrs.evolve(
        run.guarantee, basis=attrs.evolve(run.guarantee.basis, assumptions=assumed)
    )
    monkeypatch.setattr(page, "replay", lambda *args, **kwargs: attrs.evolve(run, guarantee=report))
    words = " ".join(" ".join(Seen(page.report(run.folder).decode()).words).split())
    assert words.index("Conditional: ") < words.index("What was released")
    assert "The guarantee is proved" not in words
    assert "Not proved: honest: no one <lies>" in words


def test_a_long_table_names_the_file_that_holds_all(run, monkeypatch):
    monkeypatch.setattr(page, "_MOST_ROWS", 1)
    text = page.report(run.folder).decode()
    assert "first 1 of 2 rows; wards.csv holds all" in text


def test_without_its_distribution_the_command_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr("dpcore.console.offers.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["report", str(run.folder)])
    assert done.exit_code == 2
    output = (
        "dpcore report is brought by dpcore-report, which is not installed: pip install . ./plugin"
    )
    assert output in done.output


def plan_of(spec):
    return dpcore.load_spec(spec).price()


def test_the_curve_is_the_gaussians_and_never_below(spec):
    plan = plan_of(spec)
    curve = plan.curve()
    (planned_query,) = plan.schedule.queries
    mu = 1 / planned_query.mechanism.noise_multiplier
    assert 1e-6 in curve.deltas
    for delta, epsilon in zip(curve.deltas, curve.epsilons, strict=True):
        if epsilon > 0:
            exact = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(
                -mu / 2 - epsilon / mu
            )
            assert exact <= delta * (1 + 1e-9)
            assert exact >= 0.99 * delta


def test_what_may_fail_over_the_coins_is_part_of_every_delta(spec):
    plan = plan_of(spec)
    (planned_query,) = plan.schedule.queries
    (scheduled,) = plan.schedule.releases
    shaky = attrs.evolve(
        planned_query,
        sensitivity=attrs.evolve(planned_query.sensitivity, validity=OverRandomness(5e-7)),
    )
    scheduled = attrs.evolve(scheduled, queries={"q": shaky})
    shaken = attrs.evolve(
        plan,
        schedule=attrs.evolve(plan.schedule, releases=(scheduled,)),
        guarantee=attrs.evolve(plan.guarantee, epsilon=2.0),
    )
    assert failure_over_randomness(shaken.schedule.queries) == 5e-7
    before, after = plan.curve(), shaken.curve()
    assert after.deltas[0] >= 1e-12 + 5e-7
    place = [*after.deltas].index(1e-6)
    half = np.interp(np.log(5e-7), np.log(before.deltas), before.epsilons)
    assert after.epsilons[place] == pytest.approx(half, rel=0.01)
    assert after.epsilons[place] > before.epsilons[[*before.deltas].index(1e-6)]


def test_a_plan_that_states_less_than_its_noise_costs_has_no_report(spec):
    plan = plan_of(spec)
    false = attrs.evolve(plan, guarantee=attrs.evolve(plan.guarantee, epsilon=0.9))
    with pytest.raises(ReplayError, match=r"states epsilon = 0\.9, and its noise costs at least"):
        false.curve()


def test_a_rehearsal_has_no_report(run, tmp_path):
    shutil.copytree(run.kept, tmp_path / "operator" / "rehearsal")
    dpcore.replay(tmp_path)
    with pytest.raises(ReplayError, match="has no public/"):
        page.report(tmp_path)


def test_a_run_that_guarantees_nothing_has_no_report(run, monkeypatch):
    void = attrs.evolve(run, guarantee=run.guarantee.with_provenance(voided="known"))
    monkeypatch.setattr(page, "replay", lambda *args, **kwargs: void)
    with pytest.raises(NoClaimError, match="guarantees nothing"):
        page.report(run.folder)


@pytest.mark.parametrize("damage", ["answers", "text", "added", "foreign", "none"])
def test_a_damaged_or_foreign_folder_gives_one_line_and_no_page(run, tmp_path, damage):
    folder = tmp_path / "run"
    if damage != "none":
        shutil.copytree(run.kept, folder / "public")
    match damage:
        case "answers":
            path = folder / "public" / "answers.npz"
            path.write_bytes(path.read_bytes()[:-40])
        case "text":
            path = folder / "public" / "wards.table.json"
            said = json.loads(path.read_text())
            said["wards"]["columns"]["estimate"][0] += 1
            path.write_text(json.dumps(said))
        case "added":
            (folder / "public" / "more.txt").write_text("")
        case "foreign":
            (folder / "public" / "spec.lock.json").write_text("{}")
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 1
    assert len(done.output.strip().splitlines()) == 1
    assert "internal error" not in done.output
    assert not (folder / "report.html").exists()


def test_the_command_writes_the_page_beside_public_and_the_run_still_replays(run, text, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run.kept, folder / "public")
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(folder / "report.html")
    assert (folder / "report.html").read_text() == page.report(folder, name="run").decode()
    dpcore.replay(folder)


def test_the_page_goes_where_the_user_says_but_not_into_public(run, text, tmp_path):
    other = ["report", str(run.folder), "--output", str(tmp_path / "p.html")]
    assert CliRunner().invoke(app, other).exit_code == 0
    named = page.report(run.folder, name=run.folder.name).decode()
    assert (tmp_path / "p.html").read_text() == named
    assert not (run.folder / "report.html").exists()
    inside = ["report", str(run.folder), "--output", str(run.kept / "p.html")]
    assert CliRunner().invoke(app, inside).exit_code == 2
    dpcore.replay(run.folder)
