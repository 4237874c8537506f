"""What objects show of themselves in a notebook and on paper: public facts, all text escaped.

`python tests/whole/publish/test_shown.py` records the texts and pages of `shown.json` again.
"""

import json
import math
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    Ledger,
    PrivacyBudget,
    PublicRandomness,
    Range,
    Session,
    load_run,
)
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.interval import Interval
from dpcore.models.features.identity import Identity
from dpcore.models.figures import Figures, Statistics
from dpcore.models.linear import LinearModel
from dpcore.private.outcome import Outcome
from dpcore.registry.kinds import LEARNER
from dpcore.registry.registry import Registry
from dpcore.runs.session import PaidRelease
from dpcore.shown import Drawn, Shown
from dpcore.views.markup import Listing, Summary
from dpcore.views.notebook import plot, show
from dpcore_attacks.attacks.counterexample import Counterexample

from builders import price_learner

ARCHIVE = Path(__file__).parents[2] / "published/archive/runs"
RECORDED = Path(__file__).with_name("shown.json")
EVIL = "<script>alert('1')</script> & \"$\\{\n\r\x1b[31m"


class Tags(HTMLParser):
    """Every tag, its attributes' names, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.names, self.words = set(), set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.names |= {name for name, _ in attributes}

    def handle_data(self, data):
        self.words += data


def harmless(shown):
    """The HTML holds tables and paragraphs only."""
    found = Tags(shown._repr_html_())
    assert found.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.names <= {"style"}
    return found.words


def printed(shown):
    class Printer:
        words = ""

        def text(self, words):
            self.words += words

    printer = Printer()
    shown._repr_pretty_(printer, cycle=False)
    return printer.words


@pytest.fixture(scope="module")
def domain():
    return declared()


def declared():
    """A domain whose names hold markup."""
    columns = {"age": Range(0, 100), EVIL: Categories(("a", EVIL + "b"))}
    return Domain(columns=columns, target="y", labels=Range(0, 1), exact=200)


def table(domain, n=200):
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, n)
    return {"age": age, EVIL: ["a"] * n, "y": age / 100}


def planned(domain, name="linear.staged_gradient"):
    return price_learner(Registry.default().component(LEARNER, name)(), domain=domain, delta=1e-6)


def line_in(domain):
    features = Identity().draw(domain, None)
    return LinearModel(domain=domain, features=features, coefficients=np.array([0.25, -0.5]))


@pytest.fixture(scope="module")
def everything(domain, tmp_path_factory):
    """One of each kind that a notebook shows."""
    plan = planned(domain)
    folder = tmp_path_factory.mktemp("shown")
    ledger = Ledger.create(folder / "l.ledger", epsilon=2.0, delta=1e-5, adjacency=REPLACE_ONE)
    outcome = plan.run(table(domain), reservation=plan.reserve(ledger, EVIL))
    counted = Domain(columns=domain.columns)
    session = Session(PrivacyBudget(epsilon=1.0, delta=1e-6), counted, table(domain))
    figures = session.histogram(EVIL, epsilon=0.5)
    return {
        "plan": plan,
        "guarantee": outcome.guarantee,
        "outcome": outcome,
        "model": outcome.model,
        "line": line_in(domain),
        "session": session,
        "paid": session.releases[0],
        "figures": figures,
        "statistics": Statistics.of(figures),
        "ledger": ledger,
        "interval": Interval(0.1, 0.2),
        "event": LaplaceEvent(adjacency=ADD_REMOVE, shift=0.5),
        "counterexample": Counterexample(
            query=EVIL, arguments=None, pair=None, records=3, randomness=None, claimed=1.0,
            moved=2.0,
            origin=EVIL,
        ),
    }  # fmt: skip


KINDS = {
    "plan": ("fit", "1e-06"),
    "guarantee": ("differentially private", "add"),
    "outcome": ("coefficients", "differentially private"),
    "model": ("coefficients", "scales"),
    "line": ("coefficient", "0.005"),
    "session": ("histogram-1", "Left:"),
    "paid": ("table of numbers", "differentially private"),
    "figures": ("estimate", "95 % intervals"),
    "statistics": ("estimate", "95 % intervals"),
    "ledger": ("proved", "Left:"),
    "interval": ("0.1", "0.2"),
    "event": ("Laplace", "0.5"),
}


@pytest.mark.parametrize("kind", [*KINDS, "counterexample"])
def test_everything_shows_itself_and_escapes_all_text(everything, kind, monkeypatch):
    monkeypatch.setattr(Counterexample, "describe", lambda self: EVIL)
    shown = everything[kind]
    words, plain = harmless(shown), printed(shown)
    for report in KINDS.get(kind, ("claimed", "moved")):
        if report != "add":
            assert report in words
            assert report in plain
    assert "_repr_pretty_" in vars(type(shown))  # else IPython takes the class's own `__repr__`
    assert "\x1b" not in words + plain


def classes_below(kind):
    """Classes of dpcore's distributions that derive from one, as far as they are imported."""
    for below in kind.__subclasses__():
        if below.__module__.startswith("dpcore"):
            yield below
        yield from classes_below(below)


def recorded_objects(folder):
    """One of each kind that holds nothing drawn here: of archived runs, and of public facts."""
    domain, budget = declared(), PrivacyBudget(epsilon=1.0, delta=1e-6)
    runs = {name: load_run(ARCHIVE / name) for name in ("statistics.tables", "tables.numbers")}
    run = runs["statistics.tables"]
    with patch("dpcore.ledger.book.now", lambda: "2026-01-31T12:00:00Z"):
        ledger = Ledger.create(folder / "l.ledger", epsilon=2.0, delta=1e-5, adjacency=REPLACE_ONE)
        ledger.note(EVIL)
    name, published = next(iter(run.models.items()))
    of_run = {"models": run.models, "guarantee": run.guarantee, "descriptions": run.descriptions}
    return runs | {
        "guarantee": run.guarantee,
        "void": run.guarantee.with_provenance(voided=EVIL),
        "statistics": published,
        "figures": next(iter(run.tables.values())),
        "shapes": runs["tables.numbers"].model,
        "line": line_in(domain),
        "outcome": Outcome(**of_run, arrays={}, answers={}, randomness=PublicRandomness(0)),
        "paid": PaidRelease(name=name, published=published, guarantee=run.guarantee, left=EVIL),
        "plan": planned(domain),
        "session": Session(budget, Domain(columns=domain.columns), table(domain)),
        "ledger": ledger,
        "interval": Interval(0.1, 0.2),
        "event": LaplaceEvent(adjacency=ADD_REMOVE, shift=0.5),
    }


def shown_texts(folder):
    """The text and the page of each."""
    objects = recorded_objects(folder)
    return {name: [shown.text(), shown._repr_html_()] for name, shown in objects.items()}


def test_what_is_shown_is_byte_for_byte_what_was_recorded(tmp_path):
    assert shown_texts(tmp_path) == json.loads(RECORDED.read_text("utf-8"))


def test_every_class_that_is_shown_has_a_view_or_writes_its_own_sheet(everything):
    for kind in {*classes_below(Shown)} - {Drawn}:
        assert show.dispatch(kind) is not show.dispatch(object) or "shown_summary" in vars(kind), (
            kind
        )
    for kind in {*classes_below(Drawn)}:
        assert plot.dispatch(kind) is not plot.dispatch(object), kind


def test_an_object_without_a_view_is_shown_by_its_own_sheet_alone():
    class Bare(Drawn):
        pass

    class Own(Shown):
        def shown_summary(self):
            return Summary(title="own")

    with pytest.raises(dpcore.errors.ContractError, match="shows no Bare"):
        Bare().text()
    with pytest.raises(dpcore.errors.ContractError, match="draws no Bare"):
        Bare().plot()
    assert printed(Own()) == "own"
    assert harmless(Own()) == "own"


def test_an_event_shows_a_row_for_each_parameter(everything):
    (table,) = everything["event"].shown_summary().tables
    assert table.rows == (("shift", "0.5"), ("adjacency", "add_remove"))


def test_a_listing_puts_numbers_to_the_right_and_says_what_it_leaves_out():
    found = Listing.of(("name", "number"), [("a", 1.0), ("bc", 1000.6)] * 40)
    text = found.text().splitlines()
    assert text[:3] == ["name  number", "a          1", "bc      1001"]
    assert text[-1] == "(20 more rows)"
    assert found.html().count("<tr>") == 61
    assert '<td style="text-align: left">bc</td><td style="text-align: right">' in found.html()
    assert '<th style="text-align: left">name</th>' in found.html()
    assert Listing.of(("a",), []).text() == "a"
    assert Summary(title="alone").text() == "alone"


def test_plots_are_drawn_where_they_are_asked_for(everything):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    curve, trade = everything["plan"].plot()
    deltas, epsilons = curve.lines[0].get_data()
    output = everything["plan"].curve()
    assert np.array_equal(deltas, output.deltas)
    assert np.array_equal(epsilons, output.epsilons)
    assert np.all(trade.lines[0].get_ydata() >= trade.lines[0].get_xdata())
    _, axes = pyplot.subplots()
    drawn = everything["ledger"].plot(axes)
    assert drawn is axes
    spent = drawn.lines[0].get_ydata()
    assert spent[0] == 0
    assert 20 < spent[-1] < 30  # 1 of 2, whose squares add up
    (intervals,) = everything["line"].plot()
    assert [half_width.get_width() for half_width in intervals.patches] == pytest.approx(
        [0.005, -1.0]
    )
    with pytest.raises(dpcore.errors.ContractError, match="nothing to draw"):
        everything["model"].plot()
    pyplot.close("all")


def test_shapes_are_drawn(domain):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    model = planned(domain, "tables.shape_functions").run(table(domain)).model
    drawn = model.plot()
    assert {axes.get_xlabel() for axes in drawn} >= {"age"}
    assert "importance" in harmless(model)
    pyplot.close("all")


def test_without_matplotlib_the_error_names_the_extra():
    code = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from dpcore_report.plots.curves import axes_or_new
try:
    axes_or_new(None)
except ImportError as error:
    print(error)
"""
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert output.stdout.strip() == "plots need matplotlib: pip install matplotlib"


def test_figures_are_shown_with_all_columns():
    figures = Figures(
        about={"ward": ("a", "b")},
        estimate=np.array([1.5, 2.0]),
        low=np.array([1.0, -np.inf]),
        high=np.array([2.0, np.inf]),
        level=0.95,
    )
    assert [line.split() for line in figures.shown_summary().tables[0].text().splitlines()] == [
        ["ward", "estimate", "low", "high"],
        ["a", "1.5", "1", "2"],
        ["b", "2", "not", "stated", "not", "stated"],
    ]


def test_an_interval_as_it_is_printed_holds_the_whole_interval():
    numbers = np.random.default_rng(7).normal(size=400) * 10.0 ** np.arange(400).clip(0, 9)
    numbers[:2] = 10010.57, -10010.57
    figures = Figures(
        about={"cell": tuple(map(str, range(400)))},
        estimate=numbers,
        low=numbers - 0.3,
        high=numbers + 0.3,
        level=0.95,
        covers="noise only",
    )
    for digits in (4, 6):
        for (_, _, low, high), number in zip(figures.printed_rows(digits), numbers, strict=True):
            assert float(low) <= number - 0.3 < number + 0.3 <= float(high)
    # And not by more than one unit of the last digit.
    assert figures.printed_rows()[0][1:] == ("10010.6", "10010.2", "10010.9")


def test_flags_and_texts_in_a_table_are_printed_as_they_are():
    figures = Figures(
        about={"smoker": (True, False), "count": ("2", "x")},
        estimate=np.array([1.0, 2.5]),
        low=np.array([0.0, -math.inf]),
        high=np.array([2.0, math.inf]),
        level=0.95,
        covers="noise only",
    )
    assert figures.printed_rows() == [
        ("True", "2", "1", "0", "2"),
        ("False", "x", "2.5", "not stated", "not stated"),
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        texts = json.dumps(shown_texts(Path(name)), indent=1, ensure_ascii=False)
    RECORDED.write_text(f"{texts}\n", "utf-8")
