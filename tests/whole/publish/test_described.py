"""What a release that is no model shows: read once, compared, escaped, and named in errors."""

import copy
import itertools
from typing import ClassVar

import attrs
import numpy as np
import pytest
import trespassers
from trespassers import STORE, ByTable, ByTitle, ByUnsettled, MeanBound

import dpcore
from dpcore import REPLACE_ONE, OneShot, PrivacyBudget, Published, Registry, Release, Session, price
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import ContractError, NoModelError, ReleaseError
from dpcore.learner import promises
from dpcore.models import (
    Described,
    Description,
    Figures,
    IntervalPicture,
    Lines,
    Matrix,
    Model,
    Points,
    Transformer,
)
from dpcore.models.description import describe
from dpcore.transcript.replay_process import HERE, CleanProcess
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.learners.learners import learner_verdicts

from doubles import domain, table

EVIL = "<script>alert('1')</script> $x_1$ & \"--><b>"
SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {{a: [-1, 1], b: [-1, 1]}}
    target: [-1, 1]
adjacency: replace_one
budget: {{epsilon: 2, delta: 1e-5}}
release: {{learner: {learner}, mechanism: gaussian}}
"""


@pytest.fixture(autouse=True)
def forget():
    yield
    STORE.clear()


def plan_of(*learners):
    releases = [
        Release(learner=learner, mechanism=Gaussian(), bound=MeanBound(), name=f"r{number}")
        for number, learner in enumerate(learners)
    ]
    budget = PrivacyBudget(epsilon=1, delta=1e-5)
    return price(domain=domain(), adjacency=REPLACE_ONE, budget=budget, releases=releases)


@attrs.frozen(kw_only=True, eq=False)
class Summary(Described):
    """An object that predicts nothing, whose every text is an attack on a page."""

    value: np.ndarray

    def arrays(self):
        return {"value": self.value}

    def description(self):
        unknown = np.full(1, np.inf)
        figures = Figures(
            about={EVIL: (EVIL,)}, estimate=self.value, low=-unknown, high=unknown, level=0.95
        )
        texts = {"title": EVIL, "across": EVIL, "up": EVIL}
        pictures = (
            IntervalPicture(at=(EVIL,), values=[1], low=[0], high=[2], **texts),
            Lines(at=(0, 1), values=[1, 2], names=(EVIL,), **texts),
            Points(at=(0, 1), values=[1, 2], **texts),
            Matrix(at=(EVIL, "b"), values=[[1, 2]], names=(EVIL,), unit=EVIL, **texts),
        )
        return Description(tables={"": figures}, pictures=pictures)


@attrs.frozen(kw_only=True)
class Summing(trespassers.Mean):
    """The mean label as a `Summary`. Total: clipped labels have a mean."""

    publishes: ClassVar = Summary

    def assemble(self, answers, public):
        return Summary(value=answers["mean"])


def test_a_clean_process_finds_labels_in_the_title_of_a_picture():
    with pytest.raises(ReleaseError, match="nothing is released"):
        plan_of(ByTitle()).run(table(), replaying=CleanProcess())


@pytest.mark.parametrize("way", ["cell", "columns", "tables", "statistics"])
def test_a_clean_process_finds_a_label_in_what_no_number_of_a_table_says(way):
    with pytest.raises(ReleaseError, match="in a process that saw no record"):
        plan_of(ByTable(way=way)).run(table(), replaying=CleanProcess())


def test_a_table_that_does_not_settle_is_published_in_plain_values():
    (published,) = plan_of(ByUnsettled()).run(table(), replaying=HERE).models.values()
    assert STORE
    assert type(published.tables[""]) is Figures
    assert all([*published.tables[""]] == ["estimate", "low", "high"] for _ in range(60))


def test_what_is_shown_is_what_was_compared_not_what_an_object_says_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC.format(learner="trespassers.by_rewording"))
    done = dpcore.run(dpcore.load_spec("s.yaml", Registry.of(trespassers)), table=table())
    assert STORE  # the private function did keep labels, and the object says them from now on
    assert "[" in describe(done.published).pictures[0].title
    assert [*done.table()] == ["labels", "estimate", "low", "high"]
    assert done.descriptions["release"].pictures[0].title == "labels"
    texts = [path.read_bytes() for path in (tmp_path / "runs").rglob("release.*")]
    assert len(texts) == 2
    assert not any(b"[" in text.split(b"\n")[0] for text in texts if text[:1] != b"{")
    assert "labels [" not in done.shown_summary().text()


def test_a_notebook_shows_the_tables_of_a_description_and_escapes_them():
    outcome = plan_of(Summing()).run(table(), replaying=HERE)
    assert outcome.published is outcome.models["r0"]
    assert "not stated" in outcome.shown_summary().text()
    assert copy.deepcopy(outcome).shown_summary() == outcome.shown_summary()
    assert "95 %" not in outcome.descriptions["r0"].tables[""].interval_sentence
    assert "&lt;script&gt;" in outcome._repr_html_()
    assert "<script" not in outcome._repr_html_()


def test_a_description_is_copied_into_plain_values():
    class Loud(str):
        def __str__(self):
            return "loud"

    heights = np.array([1.0, 2.0])
    intervals = IntervalPicture(title=Loud("quiet"), at=(Loud("a"), "b"), values=heights)
    heights[0] = 7
    assert type(intervals.title) is str
    assert intervals.title == "quiet"
    assert {type(name) for name in intervals.at} == {str}
    assert intervals.values.tolist() == [[1, 2]]
    with pytest.raises(ContractError, match="IntervalPicture 'x'"):
        IntervalPicture(title="x", at=("a",), values=[1, 2])
    with pytest.raises(ContractError, match="IntervalPicture 'x'"):
        IntervalPicture(title="x", at=("a",), values=[1], low=[0])


@pytest.mark.parametrize("description", ["<b>markup</b>", None, Description(pictures=("<b>",))])
def test_markup_is_no_description(description):
    class Marked(Described):
        def arrays(self):
            return {}

        def description(self):
            return description

    with pytest.raises(ContractError, match=r"Description|Lines, IntervalPicture"):
        describe(Marked())


def test_a_description_that_fails_is_told_by_its_type_alone():
    @attrs.frozen(kw_only=True, eq=False)
    class Failing(Summary):
        def description(self):
            raise KeyError("what a private function left")

    class Failed(Summing):
        def assemble(self, answers, public):
            return Failing(value=answers["mean"])

    with pytest.raises(ReleaseError, match=r"'r0' publishes failed \(KeyError\)") as error:
        plan_of(Failed()).run(table(), replaying=HERE)
    assert "private function" not in str(error.value)


def test_asking_for_a_model_that_is_none_says_what_was_published():
    single, several = (
        plan_of(*learners).run(table(), replaying=HERE)
        for learners in ((Summing(),), (trespassers.Mean(), Summing(), trespassers.Mean()))
    )
    with pytest.raises(NoModelError, match=r"no model: 'r0' is a Summary.*models\[NAME\]"):
        _ = single.model
    with pytest.raises(ValueError, match="2 models: 'r0' is a Numbers, 'r1' is a Summary"):
        _ = several.model
    with pytest.raises(NoModelError, match="3 releases"):
        _ = several.published
    assert isinstance(single.published, Summary)


def test_a_session_says_what_a_learner_publishes():
    session = Session(PrivacyBudget(epsilon=2, delta=1e-5), domain(), table(), replaying=HERE)
    with pytest.raises(ContractError, match="Summing publishes Summary: use `release`"):
        session.fit(Summing(), epsilon=1)


@pytest.mark.parametrize(
    ("declared", "kinds"),
    [
        (Summary, {Summary, Described, Published}),
        ((Transformer, Described), {Transformer, Described, Published}),
        ((Model, Described), {Model, Described, Published}),
        (Published, {Published}),
    ],
)
def test_a_learner_publishes_all_that_it_declares(declared, kinds):
    class Declaring(OneShot):
        publishes = declared

    promised = {
        k for k in (Summary, Described, Transformer, Model, Published) if promises(Declaring, k)
    }
    assert promised == kinds


def test_what_extends_no_protocol_cannot_be_declared_among_several():
    with pytest.raises(ContractError, match="publishes int"):

        class Wrong(OneShot):
            publishes = (Model, int)


@attrs.frozen(kw_only=True, eq=False)
class Shift(Transformer):
    """A map of rows to one column."""

    by: float = 0.0

    def arrays(self):
        return {}

    def transform(self, table):
        return np.full((len(next(iter(table.values()))), 1), self.by)

    def column_names(self):
        return ("shifted",)


def test_an_attribute_of_that_name_alone_is_no_description():
    class Noted(trespassers.Numbers):
        description = "a text of its own"

    assert describe(Noted(np.zeros(1))).pictures == ()


class Shifting(trespassers.Mean):
    """A map of rows, honestly. Total: clipped labels have a mean."""

    publishes: ClassVar = Shift

    def assemble(self, answers, public):
        return Shift()


class Endless(Shifting):
    """Maps rows to what is no number. Total: as its base."""

    def assemble(self, answers, public):
        return Shift(by=np.inf)


class Mute(Shifting):
    """Says that it publishes a map of rows, and publishes none. Total: as its base."""

    def assemble(self, answers, public):
        return Summary(value=answers["mean"])


class Careless(Summing):
    """Says that it publishes a description, and its object has none. Total: as its base."""

    def assemble(self, answers, public):
        return trespassers.Numbers(answers["mean"])


class Moody(Summing):
    """Describes equal answers in other words each time. Total: as its base."""

    def assemble(self, answers, public):
        words = next(WORDS)

        class Worded(Summary):
            def description(self):
                return Description(
                    pictures=(IntervalPicture(title=str(words), at=("a",), values=[0]),)
                )

        return Worded(value=answers["mean"])


WORDS = itertools.count()


@pytest.mark.parametrize(
    ("learner", "broken"),
    [(Shifting(), False), (Endless(), True), (Mute(), True), (Moody(), True), (Careless(), True)],
)
def test_the_kit_finds_what_is_published_otherwise_than_said(learner, broken):
    case = Case(learner=learner, bound=MeanBound(), domain=domain(), adjacency=REPLACE_ONE)
    verdicts = learner_verdicts(case)
    failures = {verdict.law.id for verdict in verdicts if verdict.failed}
    assert ("learner.model-replays" in failures) == broken
    assert broken or not failures
