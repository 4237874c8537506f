"""The board: its page is what its results say, and no control among them was refuted."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
BOARD = ROOT / "benchmarks" / "board"
RESULTS = json.loads((BOARD / "results.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def board():
    spec = importlib.util.spec_from_file_location("board_script", BOARD / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_written_from_the_results(board):
    assert (ROOT / "docs" / "records" / "board.md").read_text("utf-8") == board.page(RESULTS)


def test_every_entry_has_a_result_of_its_version_and_draws(board):
    entries = board.entries([])
    assert {*entries} == {*RESULTS}
    for name, entry in entries.items():
        result = RESULTS[name]
        assert (result["library"], result["version"]) == (entry.LIBRARY, entry.VERSION)
        assert (result["draws"], result["reference"]) == (entry.DRAWS, entry.REFERENCE)
        assert result["control"]["verdict"] == "not refuted", name


def test_a_refuted_control_ends_the_page(board):
    name, entry = next(iter(RESULTS.items()))
    wrong = {**entry, "control": {**entry["control"], "verdict": "refuted"}}
    with pytest.raises(SystemExit, match=f"a control was refuted: {name}"):
        board.page({name: wrong})
