"""Where an error is reported, and in whose words: FILE:LINE:COLUMN: dotted.path: needed, got, hint.

Every entry of the corpus says what a good tool would say.
"""

import re
from pathlib import Path

import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Domain, DpcoreError, Range, Release
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.models.features.identity import Identity
from dpcore.transcript.replay_process import HERE
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.ridge import KernelRidge
from dpcore_random_features.ridge import Ridge

from builders import price_learner
from recorded.renew import run_command
from whole.error_places import FOREIGN, KERNEL, SPECS, Entry, places, put, release


def event(text, words=(), code=2, never=()):
    return Entry(f"adjacency: add_remove\nevents:\n  - {text}\n", words, code, never, ACCOUNT)


ACCOUNT = ("account", "s.yaml", "--delta", "1e-6")
GAUSSIAN = "events:\n  - {event: gaussian, mu: 1}\n"

EVENTS = {
    "a shift below zero": event("{event: laplace, shift: §-0.1}", ("shift",)),
    "no event at all": Entry("adjacency: add_remove\nevents: §[]\n", ("a list",), command=ACCOUNT),
    "count of nothing": event("{event: gaussian, mu: 1, count: §0}", (">= 1", "got 0")),
    "rate above one": event(
        "{event: poisson_sampled, sampling_probability: §2, of: {event: gaussian, mu: 1}}",
        ("sampling_probability",),
    ),
    "field mistyped": event("{event: gaussian, §mi: 0.05}", ("'mi'", "did you mean 'mu'?")),
    "field missing": event("§{event: gaussian}", ("'mu' is missing",)),
    "event mistyped": event("{event: §gausian, mu: 1}", ("did you mean 'gaussian'?",)),
    "key of an event": event("{§evnt: gaussian, mu: 1}", ("did you mean 'event'?",), 2, ("None",)),
    "count mistyped": event("{event: gaussian, mu: 1, §cuont: 2}", ("did you mean 'count'?",)),
    "sampled nothing": event(
        "§{event: poisson_sampled, sampling_probability: 0.1}", ("'of' is missing",), 2, ("None",)
    ),
    "field of a sampled event": event(
        "{event: poisson_sampled, sampling_probability: 0.1, of: {event: gaussian, §mi: 1}}",
        ("did you mean 'mu'?",),
    ),
    "relation of one event": event(  # overwritten in silence today
        "{event: gaussian, mu: 1, §adjacency: replace_one}", ("adjacency",)
    ),
    "number for a list": event(
        "{event: hit_mixture, mus: §1, weights: [1], uncovered: 0}", ("mus", "list")
    ),
    "text for a number": event(
        "{event: gaussian, mu: §one}", ("mu", "'one'"), 2, ("GaussianEvent",)
    ),
    "no epsilon at all": event(
        "{event: approximate, epsilon: 1, delta: 0.1}", ("epsilon", "delta"), 3, ("membership",)
    ),
    "adjacency of a list": Entry(
        f"adjacency: §add_remov\n{GAUSSIAN}", ("mean 'add_remove'?",), command=ACCOUNT
    ),
    "label of a relation": Entry(
        f"adjacency: {{replace_features: {{radius: 1, label: §fred}}}}\n{GAUSSIAN}",
        ("fixed", "free"),
        command=ACCOUNT,
    ),
    "radius below zero": Entry(
        f"adjacency: {{replace_features: {{radius: §-1, label: free}}}}\n{GAUSSIAN}",
        ("radius",),
        command=ACCOUNT,
    ),
    "key of a list": Entry(
        f"adjacency: add_remove\n§{put(GAUSSIAN, ('events', 'evnts'))}",
        ("did you mean 'events'?",),
        command=ACCOUNT,
    ),
    "key too many": Entry(
        f"adjacency: add_remove\n§delta: 1e-5\n{GAUSSIAN}", ("'delta'",), command=ACCOUNT
    ),
    "list without a relation": Entry(
        "§- {event: gaussian, mu: 1}\n", ("adjacency", "events"), command=ACCOUNT
    ),
    "option of account": Entry(
        f"adjacency: add_remove\n{GAUSSIAN}", ("--delta", "2"), command=(*ACCOUNT[:-1], "2")
    ),
}


def report(*words, by, code=2, never=()):
    """A command that is wrong itself: no file, no place, but the option's or argument's name."""
    return Entry(release(), words, code, never, by)


def create(*more):
    base = {"--epsilon": "1", "--delta": "1e-5", "--adjacency": "replace_one"}
    base |= dict(zip(more[::2], more[1::2], strict=True))
    return ("ledger", "create", "new", *(word for pair in base.items() for word in pair))


COMMANDS = {
    "spec that is not there": report("none.yaml", "no such file", by=("check", "none.yaml")),
    "ledger nearly called so": report("did you mean 'people'?", by=("ledger", "show", "peopel")),
    "adjacency that is no YAML": report("--adjacency:1:2", by=create("--adjacency", "{")),
    "ledger's adjacency": report(
        "--adjacency", "did you mean 'replace_one'?", by=create("--adjacency", "replace_on")
    ),
    "ledger's radius": report(
        "--adjacency",
        "radius",
        by=create("--adjacency", "{replace_features: {radius: -1, label: free}}"),
    ),
    "ledger's epsilon": report("--epsilon", by=create("--epsilon", "0"), never=("Total",)),
    "ledger's delta": report("--delta", by=create("--delta", "2"), never=("Total",)),
    "ledger's failures": report("--failures", by=create("--failures", "1")),
    "ledger's order": report("--order", by=create("--order", "3")),
    "order of Renyi": report(
        "--order", by=create("--order", "1", "--notion", "renyi"), never=("RenyiFilter",)
    ),
    "ledger that refuses a spec": Entry(
        release(more="ledger: §people\n"), ("ledger", "Left"), 4, ("GaussianEvent",)
    ),
    "plugin to be tested": report("did you mean 'linear'?", by=("test", "lineer")),
    "plugin to be shown": report("did you mean 'linear'?", by=("plugins", "show", "lineer")),
    "plugin to be enabled": report("did you mean 'linear'?", by=("plugins", "enable", "lineer")),
    "plugin to be disabled": report("did you mean 'linear'?", by=("plugins", "disable", "lineer")),
    "pair that is not there": report(
        "none.json", "no such file", by=("audit", "s.yaml", "--pair", "none.json")
    ),
    "pair that is no pair": report(
        "people.csv", "counterexample", by=("audit", "s.yaml", "--pair", "people.csv")
    ),
    "counterexample that is not there": report(
        "none.json", "no such file", by=("falsify", "s.yaml", "--replay", "none.json")
    ),
}


def table(entries):
    return [pytest.param(entry, id=name) for name, entry in entries.items()]


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 9 / 10},{i % 7 / 10},{i % 5 / 10}\n" for i in range(40))
    Path("people.csv").write_text("a,b,y\n" + rows)
    Path("points.csv").write_text("a,b\n0,0\n0.5,0.5\n")
    Path("p.csv").write_text("a,c\n0,0\n")
    return tmp_path


def fault(entry):
    """What is wrong with what is given about an entry; empty if nothing is."""
    expected, text = places(entry.text)
    Path("s.yaml").write_text(text)
    code, shown, wrong = run_command(*entry.command)
    codes = entry.code if isinstance(entry.code, tuple) else (entry.code,)
    if code not in codes or shown:
        return f"exit code {code}: {wrong or shown[:200]}"
    if len(wrong.strip().splitlines()) != 1:
        return f"not one line: {wrong}"
    if expected and not wrong.startswith(expected):
        return f"not at {' or '.join(expected)}: {wrong}"
    lacking = [word for word in entry.words if word not in wrong]
    foreign = [word for word in (*FOREIGN, *entry.never) if word in wrong]
    return f"without {lacking}, with {foreign}: {wrong}" if lacking or foreign else ""


@pytest.mark.parametrize("entry", table(SPECS))
def test_a_broken_spec_is_told_at_its_place(home, entry):
    wrong = fault(entry)
    assert not wrong, wrong


@pytest.mark.parametrize("entry", table(EVENTS))
def test_a_broken_list_of_events_is_told_at_its_place(home, entry):
    wrong = fault(entry)
    assert not wrong, wrong


@pytest.mark.parametrize("entry", table(COMMANDS))
def test_a_broken_command_names_its_option(home, entry):
    dpcore.Ledger.create("people", epsilon=1, delta=1e-5, adjacency=REPLACE_ONE)
    wrong = fault(entry)
    assert not wrong, wrong


UNRUN = {
    "noise too wide": release(mechanism="{name: gaussian, noise_multiplier: 1e+18}"),
    "too many points": release(
        KERNEL, "{name: per_query, questions: 1}", "  predictions_at: points.csv\n"
    ),
}


@pytest.mark.parametrize("name", UNRUN)
def test_what_public_facts_refuse_is_not_charged_to_the_ledger(home, name):
    ledger = dpcore.Ledger.create("people", epsilon=9, delta=1e-4, adjacency=REPLACE_ONE)
    Path("s.yaml").write_text(f"{UNRUN[name]}ledger: people\n")
    code, _, _ = run_command("run", "s.yaml")
    assert code in (2, 3)
    assert [row.kind for row in ledger.rows()] == ["created"]


IDENTITY = Ridge(features=Identity(), regularization=0.5)
FUNCTION = KernelRidge(bandwidth=1, regularization=0.3)


def price(learner=IDENTITY, mechanism=Gaussian(), **more):  # noqa: B008  # it is frozen
    """One release of forty records, or the error that refuses it."""
    return price_learner(
        learner,
        domain=Domain(columns={"a": Range(-1, 1)}, target="y", labels=Range(-1, 1), exact=40),
        mechanism=mechanism,
        epsilon=2,
        **more,
    )


def one(**more):
    """The same as a list of releases."""
    listed = [Release(learner=IDENTITY, mechanism=Gaussian(), **more)]
    return {"learner": None, "mechanism": None, "releases": listed}


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        pytest.param({"mechanism": Exponential()}, "mechanism", id="norm"),
        pytest.param({"mechanism": {"coeficients": Gaussian()}}, "mechanism", id="query"),
        pytest.param({"mechanism": {}}, "mechanism", id="no mechanism"),
        pytest.param({"mechanism": GaussianProcess()}, "mechanism", id="process"),
        pytest.param({"learner": FUNCTION}, "mechanism", id="function"),
        pytest.param({"accept_assumptions": ["foo"]}, "accept_assumptions", id="assumption"),
        pytest.param({"holdout": 0.001}, "holdout", id="holdout"),
        pytest.param({"accountant": GdpAccountant(ADD_REMOVE)}, "accountant", id="accountant"),
        pytest.param(one(predictions_at="p.csv"), "predictions_at", id="points"),
        pytest.param(one(name="evaluation"), "name", id="name"),
    ],
)
def test_in_python_an_error_names_the_part_of_the_request(changes, step):
    """By a dotted path, since there is no file: the command line finds the line from it."""
    with pytest.raises(DpcoreError) as caught:
        price(**changes)
    assert caught.value.exit_code == 2
    assert (caught.value.where or "").split(".")[-1] == step


MEAN = ("statistics.mean", {"column": "a"})
CALLS = {  # of a session, and where its error is
    "mean.column": lambda s: s.mean("b", epsilon=1),
    "mean.level": lambda s: s.mean("a", level=2, epsilon=1),
    "sum.level": lambda s: s.sum("a", level=2, epsilon=1),
    "histogram.bins": lambda s: s.histogram("a", bins="x", epsilon=1),
    "table": lambda s: s.table(epsilon=1),
    "epsilon": lambda s: s.mean("a", epsilon="x"),
    "learner.column": lambda s: s.release(s.learner("statistics.mean", {"column": "b"}), epsilon=1),
    "learner": lambda s: s.fit(IDENTITY, epsilon=1),
    "mechanism": lambda s: s.release(s.learner(*MEAN), epsilon=1, mechanism={"x": Gaussian()}),
    "inputs.0": lambda s: s.release(s.learner(*MEAN), epsilon=1, inputs=["x"]),
    "inputs": lambda s: s.release(s.learner(*MEAN), epsilon=1, inputs="x"),
    "name": lambda s: s.release(s.learner(*MEAN), epsilon=1, name=5),
    "fields": lambda s: s.learner("statistics.mean", 5),
    "questions.1.column": lambda s: s.ask([MEAN, ("statistics.sum", {"column": "b"})], epsilon=1),
    "questions.1.learner": lambda s: s.ask([MEAN, "statistics.mean"], epsilon=1),
    "questions.1": lambda s: s.ask([MEAN, ("statistics.meen", {})], epsilon=1),
    "weights.1.weight": lambda s: s.ask([MEAN, MEAN], weights=[1, -1], epsilon=1),
    "public.x": lambda s: dpcore.Session(BUDGET, PLAIN, TABLE, public={"x": 5}),
    "domain.records": lambda s: dpcore.Session(
        BUDGET, PLAIN, TABLE, adjacency="replace_label"
    ).mean("a", epsilon=1),
}
BUDGET = dpcore.PrivacyBudget(epsilon=2, delta=1e-6)
PLAIN, TABLE = Domain(columns={"a": Range(-1, 1)}), {"a": [0.5] * 40}


@pytest.mark.parametrize("where", CALLS)
def test_an_error_of_a_session_names_the_argument_of_the_call(where):
    with pytest.raises(DpcoreError) as caught:
        CALLS[where](dpcore.Session(BUDGET, PLAIN, TABLE, replaying=HERE))
    assert caught.value.where == where
    assert not re.search(r"(Mean|Total) needs|releases|data\.", str(caught.value))


def test_points_that_lack_are_no_failed_run():
    """Nothing was opened yet: the request is wrong (2), the run has not failed (1)."""
    plan = price(FUNCTION, GaussianProcess())
    with pytest.raises(DpcoreError) as caught:
        plan.run({"a": [0] * 40, "y": [0] * 40})
    assert "points" in str(caught.value)
    assert caught.value.exit_code == 2


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "change", [("adjacency: replace_one", "adjacency: replace_on"), (": gaussian", ": laplace")]
)
def test_the_documentation_quotes_errors_as_they_are(home, change):
    spec = (ROOT / "examples" / "insurance.yaml").read_text()
    Path("insurance.yaml").write_text(put(spec, change))
    _, _, wrong = run_command("check", "insurance.yaml")
    assert wrong.strip() in (ROOT / "docs" / "command-line.md").read_text().splitlines()
