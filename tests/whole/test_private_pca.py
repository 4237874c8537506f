"""Private PCA, a stranger's release that predicts nothing: run, shown, drawn, and transformed."""

import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import Registry
from dpcore.console.console import out
from dpcore.console.run_view import show_figures, show_objects
from dpcore.encoding.tables import encode_table
from dpcore.errors import ReplayError
from dpcore.models import IntervalPicture, Lines, Matrix, Points

PLUGIN = Path(__file__).parents[2] / "examples" / "third-party" / "private-pca"
EVIL = "<script>alert('1')</script> $x_1$ --><b>"
COLUMNS = {"length": (4, 8), "width": (2, 5), "height": (1, 7), "weight": (0, 3)}


@pytest.fixture(scope="module")
def private_pca():
    """The plugin, imported from its source; a clean process finds it there too."""
    sys.path.insert(0, str(PLUGIN))
    import private_pca

    yield private_pca
    sys.path.remove(str(PLUGIN))


def table(n=2000):
    rng = np.random.default_rng(0)
    fraction = rng.uniform(0, 1, n)
    return {
        name: np.clip(low + (high - low) * (fraction + rng.normal(0, 0.1, n)), low, high)
        for name, (low, high) in COLUMNS.items()
    }


@pytest.fixture(scope="module")
def run(private_pca, tmp_path_factory):
    spec = dpcore.load_spec(PLUGIN / "private_pca" / "example.yaml", Registry.of(private_pca))
    return dpcore.run(spec, table=table(), runs=tmp_path_factory.mktemp("runs"))


def test_bars_hold_the_eigenvalues_of_the_exact_matrix(run):
    encoded = encode_table(run.spec.request.domain, table())
    exact = np.linalg.eigvalsh(encoded.T @ encoded)[::-1][:2]
    figures = run.table()
    assert [*figures["component"]] == ["pca0", "pca1"]
    assert all(np.array(figures["low"]) <= exact)
    assert all(exact <= np.array(figures["high"]))
    assert "95 % intervals, all together" in figures.interval_sentence


def test_a_run_replays_from_its_public_files(run, private_pca):
    names = {path.name for path in run.kept.iterdir()}
    assert {"release.spreads.csv", "release.table.json", "model.npz"} <= names
    again = dpcore.replay(run.folder, registry=Registry.of(private_pca))
    assert again.files == run.files
    assert np.array_equal(again.published.transform(table()), run.published.transform(table()))


def rounded_copy(run, folder, relative, files=("release.table.json", "release.spreads.csv")):
    """The run's folder with every estimate of its description scaled, in some of its files."""
    copy = Path(shutil.copytree(run.folder, folder / "run"))
    estimates = run.table()["estimate"]
    for file in files:
        path = copy / "public" / file
        text = path.read_text()
        for value in estimates:
            assert repr(value) in text
            text = text.replace(repr(value), repr(value * (1 + relative)))
        path.write_text(text)
    return copy


def test_a_description_may_be_rounded_otherwise(run, private_pca, tmp_path):
    again = dpcore.replay(rounded_copy(run, tmp_path, 1e-13), registry=Registry.of(private_pca))
    assert {*again.rounding} == {"release.table.json", "release.spreads.csv"}
    assert max(again.rounding.values()) == pytest.approx(1e-13, rel=0.01)


@pytest.mark.parametrize(
    ("relative", "files"),
    [
        (1e-7, ("release.table.json", "release.spreads.csv")),
        (1e-13, ("release.table.json",)),
        (1e-13, ("release.spreads.csv",)),
    ],
)
def test_a_description_that_says_more_than_rounding_is_refused(
    run, private_pca, tmp_path, relative, files
):
    copy = rounded_copy(run, tmp_path, relative, files)
    with pytest.raises(ReplayError, match=r"release\.(spreads|table)"):
        dpcore.replay(copy, registry=Registry.of(private_pca))


@pytest.mark.parametrize(
    "cell", ["null", "1", "true", '"0.5"', "1e999", "1" + "0" * 400, "[" * 5000 + "]" * 5000]
)
def test_a_cell_of_a_description_that_is_no_such_number_is_refused(
    run, private_pca, tmp_path, cell
):
    copy = Path(shutil.copytree(run.folder, tmp_path / "run"))
    path = copy / "public" / "release.table.json"
    path.write_text(path.read_text().replace(repr(run.table()["estimate"][0]), cell))
    with pytest.raises(ReplayError, match=r"release\.table\.json"):
        dpcore.replay(copy, registry=Registry.of(private_pca))


class Tags(HTMLParser):
    """Every tag of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)


def page_of(run, pictures):
    from dpcore_report import page

    description = attrs.evolve(run.descriptions["release"], pictures=tuple(pictures))
    shown = attrs.evolve(run, descriptions={"release": description})
    return page._fill_page(shown, None, ())


def test_a_page_shows_the_tables_and_the_pictures(run):
    text = page_of(run, run.descriptions["release"].pictures)
    assert "Components: axes (2, 4), spreads (2,)" in text
    assert all(f"<figcaption>{title}" in text for title in ("Sums of squares", "Axes"))
    assert all(name in text for name in (*COLUMNS, "weight", "pca1"))


def test_no_text_of_a_plugin_becomes_markup(run):
    """A page is escaped by its templates, and a picture's texts by who draws it."""
    texts = {"title": EVIL, "across": EVIL, "up": EVIL}
    pictures = (
        IntervalPicture(at=(EVIL,), values=[1], low=[0], high=[np.inf], **texts),
        Lines(at=(0, 1), values=[[1, 2], [np.nan, 0]], names=(EVIL, "_b"), **texts),
        Points(at=(0, 1), values=[[1, 2], [2, 1]], names=(EVIL, "_b"), **texts),
        Matrix(at=(EVIL, "b"), values=[[1, 2]], names=(EVIL,), unit=EVIL, **texts),
        Matrix(title="nothing", at=(), values=np.zeros((0, 0)), names=()),
    )
    attacked = page_of(run, pictures)
    assert attacked.count("&lt;script&gt;") >= 12
    drawn = {"h3", "rect", "circle"}
    assert Tags(attacked).tags == Tags(page_of(run, ())).tags | drawn
    assert "_b" in attacked


def test_a_console_shows_what_was_published(run, capsys):
    console = out()
    show_objects(console, run)
    show_figures(console, run.tables)
    text = capsys.readouterr().out
    assert "release: Components: axes (2, 4), spreads (2,)" in text
    assert "`dpcore report` draws Sums of squares; Axes" in text
    assert "pca0" in text
