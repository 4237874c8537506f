"""Records declared public: what a learner may start from, and what is said, locked and refused."""

import hashlib
import json
import shutil
import struct

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import starters
from starters import Adding, Sensitive, Starting
from trespassers import MeanBound

import dpcore
from dpcore import REPLACE_ONE, PrivacyBudget, Registry, Release, Session, price
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import DpcoreError, ReplayError, SourceError, SpecError
from dpcore.ledger.book import Ledger
from dpcore.records import PublicRecords
from dpcore.transcript.replay_process import HERE

from builders import price_request
from commands import forked
from doubles import domain, table

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
  public: {survey: survey.csv}
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
releases:
  - {name: first, learner: starters.starting, mechanism: gaussian, inputs: [survey]}
  - {name: second, learner: starters.adding, mechanism: gaussian, inputs: [first]}
  - {name: third, learner: starters.telling, mechanism: gaussian}
"""
SURVEY = "a,b,y\n0.5,-0.25,0.625\n0.125,1,-1\n"
PREMISE = "none of the public records 'survey' (SHA-256 "


def survey():
    return {"a": np.array([0.5, 0.125]), "b": np.array([-0.25, 1]), "y": np.array([0.625, -1])}


def write(path, columns):
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows), ""]))


def fill(folder):
    (folder / "s.yaml").write_text(SPEC)
    (folder / "survey.csv").write_text(SURVEY)
    write(folder / "people.csv", table())


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    fill(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """One run, which no test writes to."""
    folder = tmp_path_factory.mktemp("published")
    fill(folder)
    path = folder / "s.yaml"
    return dpcore.run(dpcore.load_spec(path, Registry.of(starters)), runs=folder / "runs")


def replayed(result, **public):
    return dpcore.replay(result.folder, Registry.of(starters), public=public)


def spec():
    return dpcore.load_spec("s.yaml", Registry.of(starters))


def planned(public, *entries, **fields):
    releases = [
        Release(
            learner=learner, mechanism=Gaussian(), bound=MeanBound(), name=f"r{n}", inputs=inputs
        )
        for n, (learner, inputs) in enumerate(entries)
    ]
    return price_request(releases=releases, public=public, **fields)


def test_a_learner_starts_from_public_records_and_all_that_rests_on_them_says_so():
    plan = planned(
        {"survey": survey()}, (Starting(), ("survey",)), (Adding(), ("r0",)), (Sensitive(), ())
    )
    (premise,) = (text for text in plan.guarantee.basis.premises if text.startswith(PREMISE))
    assert [planned_query.premises for planned_query in plan.guarantee.basis.queries] == [
        (premise,),
        (premise,),
        (),
    ]
    outcome = plan.run(table(), replaying=HERE)
    assert outcome.guarantee.basis.premises == plan.guarantee.basis.premises
    assert premise.split(" (")[0] in " ".join(outcome.guarantee.paragraph().split())
    # The learner saw the two labels, centred; the next one what the first published.
    assert {0.625, -1.0} <= {*outcome.models["r0"].values}
    assert {0.625, -1.0} <= {*outcome.models["r1"].values}


def test_the_noise_and_the_price_do_not_depend_on_public_records():
    public = {"survey": survey()}
    with_records = planned(public, (Starting(), ("survey",)), randomness=dpcore.PublicRandomness(3))
    without = planned({}, (Starting(), ()), randomness=dpcore.PublicRandomness(3))
    assert with_records.guarantee.epsilon == without.guarantee.epsilon
    queries = [plan.schedule.queries[0] for plan in (with_records, without)]
    assert queries[0].mechanism == queries[1].mechanism
    assert with_records.charge() == without.charge()


def test_the_digest_is_that_of_the_format():
    """Pinned: a published run replays as long as this number stays."""
    plan = planned({"survey": survey()}, (Starting(), ("survey",)))
    assert plan.schedule.public_digests == {"survey": DIGEST}
    normed = attrs.evolve(domain(), norm=0.25)
    plan = price(plan.request, domain=normed)
    assert plan.schedule.public_digests == {"survey": DIGEST}


# The encoded features and labels, each after its shape.
DIGEST = hashlib.sha256(
    b"(2, 2) " + struct.pack("<4d", 0.5, -0.25, 0.125, 1) + b"(2,) " + struct.pack("<2d", 0.625, -1)
).hexdigest()


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "list"])
def test_every_form_of_the_same_records_has_the_same_digest(kind, tmp_path):
    frame = pa.table(survey())
    write(tmp_path / "s.csv", survey())
    pq.write_table(frame, tmp_path / "s.parquet")
    forms = {
        "frame": frame,
        "csv": dpcore.read_csv(tmp_path / "s.csv"),
        "parquet": dpcore.read_parquet(tmp_path / "s.parquet"),
        "list": {name: column.tolist() for name, column in survey().items()},
    }
    plan = planned({"survey": forms[kind]}, (Starting(), ("survey",)))
    assert plan.schedule.public_digests == {"survey": DIGEST}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({**survey(), "a": np.array(["1", "2"])}, "arrives as"),
        ({**survey(), "a": np.array([0.5, 7.0])}, "a"),
        ({"a": [0.5], "b": [0.5]}, "'y' is missing"),
        ({"a": [], "b": [], "y": []}, "one record or more"),
    ],
)
def test_public_records_pass_the_intake_of_private_ones(columns, message):
    with pytest.raises(SourceError, match=message):
        planned({"survey": columns}, (Starting(), ("survey",)))


def test_a_learner_reads_no_public_records_that_its_release_does_not_name():
    """The type has no way to them: `inputs` of another release, and of the private function."""
    plan = planned({"survey": survey()}, (Starting(), ("survey",)), (Starting(), ()))
    outcome = plan.run(table(), replaying=HERE)
    assert len(outcome.models["r1"].values) == 1
    with pytest.raises(
        SpecError, match=r"needs an earlier release, each once \(there is none\), got"
    ):
        planned({}, (Starting(), ("survey",)))
    with pytest.raises(SpecError, match=r"or public records, each once \(survey\), got 'surveys'"):
        planned({"survey": survey()}, (Starting(), ("surveys",)))
    with pytest.raises(SpecError, match="give the release another name"):
        planned({"r0": survey()}, (Starting(), ("r0",)), (Sensitive(), ()))


def test_what_is_done_to_the_frame_later_reaches_no_run():
    frame = survey()
    plan = planned({"survey": frame}, (Starting(), ("survey",)))
    frame["y"][:] = 0.0
    outcome = plan.run(table(), replaying=HERE)
    assert {0.625, -1.0} <= {*outcome.models["r0"].values}


def test_a_whole_run_locks_the_digest_and_replays_with_the_file_alone(place, published):
    assert published.guarantee.provenance.replayed == "in a clean process"
    lock = json.loads((published.kept / "spec.lock.json").read_text())
    assert lock["plan"]["public_records"] == {"survey": DIGEST}
    guarantee = json.loads((published.kept / "guarantee.json").read_text())
    rests = [[*query.get("premises", [])] for query in guarantee["asks"]]
    assert [len(texts) for texts in rests] == [1, 1, 0]
    with pytest.raises(ReplayError, match="needs the public records 'survey' whose SHA-256"):
        replayed(published)
    for form in ("survey.csv", dpcore.read_csv("survey.csv"), survey()):
        assert replayed(published, survey=form).files == published.files
    (place / "survey.csv").write_text(SURVEY.replace("0.625", "0.5"))
    with pytest.raises(ReplayError, match=r"plan\.public_records\.survey"):
        replayed(published, survey="survey.csv")


def test_a_strangers_lock_opens_no_file(published, monkeypatch):
    def fails(path):
        raise AssertionError("opened")

    monkeypatch.setattr("dpcore.sources.csv_file.CsvSource.parts", fails)
    with pytest.raises(ReplayError, match="needs the public records"):
        dpcore.load_run(published.folder, Registry.of(starters))


def test_records_that_changed_since_the_lock_are_refused_before_any_charge(place):
    Ledger.create(place / "mine.ledger", epsilon=10.0, delta=1e-3, adjacency=REPLACE_ONE)
    (place / "s.yaml").write_text(SPEC + "ledger: mine.ledger\n")
    first = dpcore.run(spec())
    (place / "survey.csv").write_text(SURVEY.replace("0.125", "0.25"))
    entries = (place / "mine.ledger").read_bytes()
    with pytest.raises(SpecError, match=r"data\.public\.survey: not the records that .*lock.json"):
        dpcore.run(spec())
    assert (place / "mine.ledger").read_bytes() == entries
    assert [path.name for path in (place / "runs").iterdir()] == [first.folder.name]


SAME = {
    "the same path": lambda place: (place / "s.yaml").write_text(
        SPEC.replace("survey.csv", "./people.csv")
    ),
    "a link": lambda place: (
        (place / "survey.csv").unlink(),
        (place / "survey.csv").symlink_to(place / "people.csv"),
    ),
    "a hard link": lambda place: (
        (place / "survey.csv").unlink(),
        (place / "survey.csv").hardlink_to(place / "people.csv"),
    ),
    "equal bytes": lambda place: shutil.copy(place / "people.csv", place / "survey.csv"),
}


@pytest.mark.parametrize("how", SAME)
@pytest.mark.parametrize("sealed", [False, True])
def test_private_records_are_not_public(place, how, sealed):
    SAME[how](place)
    path = place / "s.yaml"
    path.write_text(path.read_text() + f"ledger: mine.ledger\nsealed: {str(sealed).lower()}\n")
    Ledger.create(place / "mine.ledger", epsilon=10.0, delta=1e-3, adjacency=REPLACE_ONE)
    entries = (place / "mine.ledger").read_bytes()
    if how == "equal bytes":
        # Anyone who asks would learn whether the records are what he guesses: nothing is compared.
        assert dpcore.run(spec()).guarantee.status == "proved"
        return
    with pytest.raises(SpecError, match=r"data\.public\.survey: the private records themselves"):
        dpcore.run(spec())
    assert (place / "mine.ledger").read_bytes() == entries


@pytest.mark.parametrize("release_through", ["run", "session"])
@pytest.mark.parametrize("form", ["the same", "a neighbour"])
def test_whether_a_guess_is_the_private_table_changes_nothing(release_through, form):
    """Anyone who may declare public records would read the table off such refusals, at no cost."""
    guess = table()
    if form == "a neighbour":
        guess["y"][3] = 0.75 - guess["y"][3]
    if release_through == "run":
        planned({"survey": guess}, (Starting(), ("survey",))).run(table(), replaying=HERE)
        return
    budget, made = PrivacyBudget(epsilon=10, delta=1e-5), Registry.of(starters)
    public = {"survey": guess}
    with Session(budget, domain(), table(), public=public, replaying=HERE, registry=made) as one:
        one.release(Starting(), epsilon=1, inputs=["survey"])


def test_a_file_that_is_private_and_public_is_refused_at_every_python_door(tmp_path):
    write(tmp_path / "p.csv", table())
    file = dpcore.read_csv(tmp_path / "p.csv")
    with pytest.raises(SpecError, match=r"data\.public\.survey: the private records themselves"):
        planned({"survey": file}, (Starting(), ("survey",))).run(file, replaying=HERE)
    with pytest.raises(SpecError, match="the private records themselves"):
        Session(PrivacyBudget(epsilon=1, delta=1e-5), domain(), file, public={"survey": file})


def test_no_file_or_message_holds_a_value_of_public_records(place):
    odd = SURVEY.replace("0.5,", "0.4871362,").replace("-0.25", "-0.7719334")
    (place / "survey.csv").write_text(odd)
    (place / "s.yaml").write_text(SPEC + "sealed: true\n")
    result = dpcore.run(spec())
    assert any(text.startswith(PREMISE) for text in result.guarantee.basis.premises)
    assert {path.name for path in result.folder.iterdir()} == {"public"}
    for path in (*result.folder.rglob("*"), place / "s.lock.json"):
        content = b"" if path.is_dir() else path.read_bytes()
        assert b"4871362" not in content
        assert np.float64(0.4871362).tobytes() not in content
    (place / "survey.csv").write_text(odd.replace("0.4871362", "1.4871362"))
    with pytest.raises(DpcoreError) as error:
        dpcore.run(spec())
    assert "4871362" not in str(error.value)


def test_replay_takes_the_file_on_the_command_line(published, monkeypatch):
    monkeypatch.setattr(Registry, "default", classmethod(lambda cls: Registry.of(starters)))
    folder = published.folder.parents[1]
    ended = forked(["replay", published.folder], folder=folder)
    assert ended.returncode != 0
    assert "--public survey=PATH" in " ".join(ended.stderr.split())
    ended = forked(["replay", published.folder, "--public", "survey=survey.csv"], folder=folder)
    assert ended.returncode == 0, ended.stderr
    assert "replay to identical bytes" in ended.stdout


class TestSession:
    """A session holds public records and its own answers."""

    def session(self, **fields):
        return Session(
            PrivacyBudget(epsilon=10, delta=1e-5),
            domain(),
            table(),
            **{"replaying": HERE, "registry": Registry.of(starters), **fields},
        )

    def test_a_release_starts_from_an_earlier_one_as_it_was_published(self):
        with self.session(public={"survey": survey()}) as session:
            first = session.release(Starting(), epsilon=1, name="first", inputs=["survey"])
            values = [*first.values]
            first.values[:] = 9.0
            second = session.release(Adding(), epsilon=1, inputs=["first"])
            third = session.release(Starting(), epsilon=1, inputs=["survey"])
            plain = session.release(Sensitive(), epsilon=1)
        assert [*second.values][1:] == values
        assert {0.625, -1.0} <= {*values}
        assert plain.values.size == 1 < third.values.size
        premises = [release.guarantee.basis.premises for release in session.releases]
        rests = [[text.startswith(PREMISE) for text in texts].count(True) for texts in premises]
        assert rests == [1, 1, 1, 0]
        assert "the input 'first' is a release of this session, paid for by itself" in premises[1]

    def test_an_unknown_input_is_refused_unspent(self):
        with self.session(public={"self": survey()}) as session:
            left = session.left
            with pytest.raises(
                SpecError, match=r"or public records, each once \(self\), got 'first'"
            ):
                session.release(Sensitive(), epsilon=1, inputs=["first"])
            assert session.left == left

    def test_a_public_frame_of_inferred_types_is_refused(self):
        with pytest.raises(SourceError, match="arrives as"):
            self.session(
                public={"survey": pa.table({n: c.astype(str) for n, c in survey().items()})}
            )


def test_public_records_are_of_one_class_with_two_arrays():
    plan = planned({"survey": survey()}, (Starting(), ("survey",)))
    (entry,) = plan.schedule.releases
    public = entry.inputs["survey"].copy()
    assert isinstance(public, PublicRecords)
    assert public.arrays()["labels"].tolist() == [0.625, -1.0]
    assert public.arrays()["features"].shape == (2, 2)
