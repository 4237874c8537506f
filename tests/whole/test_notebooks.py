"""The notebooks of the documentation run, and hold the outputs of their own cells."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path):
    return json.loads(path.read_text("utf-8"))["cells"]


def code(path):
    return ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]


def test_there_are_three_each_with_its_page():
    assert len(BOOKS) >= 3
    for book in BOOKS:
        page = book.with_suffix(".md").read_text("utf-8")
        assert f"<!-- notebook: {book.name} -->" in page
        title = "".join(cells(book)[0]["source"])
        assert page.startswith(f"{title}\n")


@pytest.mark.parametrize("book", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_run_from_top_to_bottom_and_shows_no_error(book):
    run = [cell for cell in cells(book) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in run] == [*range(1, len(run) + 1)]
    outputs = [output for cell in run for output in cell["outputs"]]
    assert outputs
    assert all(output["output_type"] != "error" for output in outputs)
    text = book.read_text("utf-8")
    assert not re.search(r"/(work|root|home)/|0x[0-9a-f]{6,}", text)


@pytest.mark.slow
@pytest.mark.parametrize("book", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(book, tmp_path, monkeypatch):
    """Every cell in a kernel, where one is installed; else one cell after the other."""
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib")
    try:
        import nbformat
        from nbclient import NotebookClient
    except ImportError:
        import matplotlib

        matplotlib.use("agg")
        names = {}
        for one in code(book):
            exec(compile(one, book.name, "exec"), names)  # our own
        return
    read = nbformat.read(book, as_version=4)
    nbformat.validate(read)
    NotebookClient(read, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
