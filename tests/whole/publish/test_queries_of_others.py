"""Specs of others: what their SQL may not do costs nothing, and leaves nothing anywhere."""
# ruff: noqa: F811  # fixtures of other files

import pytest
from click.testing import CliRunner

from dpcore.console.app import app
from dpcore.errors import DpcoreError, SourceError, SpecError
from dpcore.ledger.book import Ledger
from dpcore.private.sealed_output import SEALED_FAILURE
from dpcore.runs.run_spec import run
from dpcore.specs.spec import load_spec

from sources.people import configure
from sources.test_postgresql import filled, server  # noqa: F401
from sources.test_sqlite_queries import folder, state, unread  # noqa: F401


def test_check_refuses_what_the_text_alone_shows_at_its_key(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        """
dpcore: 1
data:
  source: {sql: "vacuum into 'copy.db'", connection: no one}
  domain: {records: private, columns: {age: [0, 120]}}
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
release: {learner: statistics.count, mechanism: discrete_gaussian}
"""
    )
    with pytest.raises(SpecError, match=r"data\.source\.sql.*one query") as caught:
        load_spec(spec)
    assert caught.value.exit_code == 2


SPEC = """
dpcore: 1
data:
  source: {{sql: {sql!r}, connection: here}}
  domain: {{records: {{at_most: 9}}, columns: {{age: [0, 120], paid: [0, 9]}}}}
on_invalid: project
sealed: {sealed}
adjacency: add_remove
budget: {{epsilon: 1, delta: 1e-6}}
ledger: mine.ledger
release: {{learner: statistics.count, mechanism: discrete_gaussian}}
"""


@pytest.mark.parametrize("sealed", ["true", "false"])
@pytest.mark.parametrize(
    "sql",
    [
        "vacuum into '{out}'",
        "attach '{out}' as copy",
        "select load_extension('x') as age, 1 as paid",
        "select age from people",
    ],
)
def test_a_run_ends_uncharged_whichever_guard_refuses(
    folder,
    monkeypatch,
    tmp_path_factory,
    sql,
    sealed,
):
    away = tmp_path_factory.mktemp("away")
    configure(monkeypatch, away, f"here: {{sqlite: {folder / 'people.db'}}}\n")
    book = Ledger.create(away / "mine.ledger", epsilon=9, delta=1e-3, adjacency="add_remove")
    spec = away / "spec.yaml"
    before, spent = state(folder), book.spent()
    is_query = sql == "select age from people"
    for guarded in (True, False):
        if not guarded:
            unread(monkeypatch)
        spec.write_text(SPEC.format(sql=sql.format(out=away / "copy"), sealed=sealed))
        with pytest.raises(DpcoreError) as caught:
            run(spec, runs=away / "runs")
        if guarded and not is_query:
            assert caught.value.exit_code == SpecError.exit_code
        elif sealed == "true":
            assert (str(caught.value), caught.value.exit_code) == (SEALED_FAILURE, 1)
        else:
            assert caught.value.exit_code == SourceError.exit_code
        assert book.spent() == spent
    assert state(folder) == before
    assert not (away / "copy").exists()


POSTGRESQL = """
dpcore: 1
data:
  source: {sql: "select age, paid from people", connection: clinic}
  domain: {records: {at_most: 900}, columns: {age: [0, 120], paid: [-16, 16]}}
on_invalid: project
sealed: SEALED
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
ledger: mine.ledger
release: {learner: statistics.count, mechanism: discrete_gaussian}
"""


@pytest.mark.parametrize("sealed", [False, True])
def test_a_rich_role_costs_nothing_unless_the_operator_names_it(
    tmp_path,
    monkeypatch,
    server,
    filled,
    sealed,
):
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{server}"}}\n')
    book = Ledger.create(tmp_path / "mine.ledger", epsilon=9, delta=1e-3, adjacency="add_remove")
    (spec := tmp_path / "spec.yaml").write_text(POSTGRESQL.replace("SEALED", str(sealed).lower()))
    spent = book.spent()
    with pytest.raises(DpcoreError, match=SEALED_FAILURE if sealed else "--rich-role"):
        run(spec, runs=tmp_path / "runs")
    assert book.spent() == spent
    published = run(spec, runs=tmp_path / "runs", rich_role=True)
    assert published.guarantee.status == "proved"
    assert book.spent() != spent


def test_the_command_line_has_the_operators_word(
    tmp_path,
    monkeypatch,
    server,
    filled,
):
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{server}"}}\n')
    (spec := tmp_path / "spec.yaml").write_text(
        POSTGRESQL.replace("SEALED", "false").replace("ledger: mine.ledger", "")
    )
    for words, ends in [(["check", "--data"], 0), (["run"], 0)]:
        command = [
            *words,
            str(spec),
            *(["--runs", str(tmp_path / "runs")] if "run" in words else []),
        ]
        assert CliRunner().invoke(app, command).exit_code == SourceError.exit_code
        assert CliRunner().invoke(app, [*command, "--rich-role"]).exit_code == ends
