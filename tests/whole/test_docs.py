"""Every example in the documentation runs."""

import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import dpcore
from dpcore.console.app import app
from dpcore.specs.spec import spec_of_text

from published.public_names import public_names

ROOT = Path(__file__).parents[2]
# By test_write_a_plugin, test_write_a_mechanism, test_bridge_docs and test_whole_idea.
EXECUTED_ELSEWHERE = (
    "write-a-plugin.md",
    "write-a-mechanism.md",
    "embedding.md",
    "the-whole-idea.md",
)
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").glob("**/*.md"))
        if page.name not in EXECUTED_ELSEWHERE
    ),
    *sorted(ROOT.glob("plugins/*/README.md")),
]
# In the navigation; measurements, generated tables and proofs by file are records.
MOST_WORDS = 75_000
LONGEST_PAGE = 2_500
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    """The blocks of a language, named by their page and their number on it."""
    return [
        pytest.param(match[2], id=f"{page.relative_to(ROOT)}:{number}")
        for page in PAGES
        for number, match in enumerate(FENCE.finditer(page.read_text()), start=1)
        if match[1] == language
    ]


@pytest.mark.parametrize("code", blocks("python"))
def test_a_python_example_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if "sklearn" in code:
        pytest.importorskip("sklearn", minversion="1.6")
    exec(compile(code, "example", "exec"), {"__name__": "example"})  # our own pages


@pytest.mark.parametrize("text", [b for b in blocks("yaml") if b.values[0].startswith("dpcore:")])
def test_a_spec_in_the_documentation_is_priced(text):
    spec = spec_of_text(text, "example.yaml")
    assert spec.price().guarantee.epsilon <= spec.request.budget.epsilon


def test_every_release_on_the_page_of_papers_is_priced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("points.csv").write_text("age,bmi,children,sex,smoker\n30,25,1,male,no\n")
    whole, *releases = (
        match[2]
        for match in FENCE.finditer((ROOT / "docs/papers.md").read_text())
        if match[1] == "yaml"
    )
    assert len(releases) >= 7
    for release in releases:
        text = re.sub(r"^release: .*\n", release, whole, flags=re.MULTILINE)
        plan = spec_of_text(text, str(tmp_path / "example.yaml")).price()
        assert plan.guarantee.epsilon <= 1


def test_the_readme_shows_the_quickstart():
    (shown,) = (b.values[0] for b in blocks("yaml") if b.id.startswith("README"))
    shipped = (ROOT / "examples" / "quickstart.yaml").read_text()
    assert yaml.safe_load(shown) == yaml.safe_load(shipped)


def test_the_readme_shows_what_the_commands_print(tmp_path, monkeypatch):
    pytest.importorskip("sklearn", minversion="1.6")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "examples").mkdir()
    shipped = ROOT / "examples" / "quickstart.yaml"
    (tmp_path / "examples" / "quickstart.yaml").write_bytes(shipped.read_bytes())
    (shown,) = (
        match[2]
        for match in FENCE.finditer((ROOT / "README.md").read_text())
        if "$ dpcore" in match[2]
    )
    for step in shown.split("$ dpcore ")[1:]:
        command, *excerpt = step.splitlines()
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 0, done.output
        assert excerpt
        assert {*excerpt} <= {line.strip() for line in done.output.splitlines()}


def test_every_column_of_the_console_is_explained(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    spec = tmp_path / "quickstart.yaml"
    spec.write_bytes((ROOT / "examples" / "quickstart.yaml").read_bytes())
    printed = CliRunner().invoke(app, ["check", str(spec), "--explain"]).output.splitlines()
    (header,) = (line for line in printed if "sensitivity " in line and "noise " in line)
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    explained = set(re.findall(r"^### (.*)$", glossary, re.MULTILINE))
    assert {*header.split(), "mu", "adjacency", "epsilon", "delta", "attacked"} <= explained


def test_the_pages_have_examples():
    assert len(blocks("python")) >= 4
    assert len(blocks("yaml")) >= 2


def pages_under(entry):
    """The pages of a navigation entry: a path, or a mapping from a title to paths or entries."""
    if isinstance(entry, str):
        return [entry]
    below = entry.values() if isinstance(entry, dict) else entry
    return [page for each in below for page in pages_under(each)]


def test_every_page_is_in_the_navigation_and_no_record_is():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = pages_under(config["nav"])
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("**/*.md")]
    assert sorted(listed) == sorted(page for page in pages if not page.startswith("records/"))
    assert config["not_in_nav"] == "/records/"


def navigation():
    """The path of every page in the navigation."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    return [ROOT / "docs" / page for page in pages_under(config["nav"])]


def test_a_page_in_the_navigation_links_to_every_record():
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in navigation()
        for link in LINK.findall(without_code(page.read_text()))
    }
    records = {page.resolve() for page in (ROOT / "docs" / "records").glob("**/*.md")}
    assert len(records) > 10
    assert records <= linked


def word_count(page):
    """The number of words of a page, as `wc -w` counts them."""
    return len(page.read_text().split())


def test_pages_of_the_navigation_are_short():
    counts = {str(page.relative_to(ROOT / "docs")): word_count(page) for page in navigation()}
    assert sum(counts.values()) <= MOST_WORDS
    assert {page: count for page, count in counts.items() if count > LONGEST_PAGE} == {}


def longest(entry):
    """How many entries the longest list of a navigation entry has, at any depth."""
    if isinstance(entry, dict):
        return max(longest(below) for below in entry.values())
    if isinstance(entry, list):
        return max([len(entry), *(longest(below) for below in entry)])
    return 1


def test_the_navigation_has_six_tasks_of_at_most_eight_entries():
    groups = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    tasks = [title for group in groups for title in group]
    assert tasks == ["Start", "Publish numbers", "Publish models", "Extend", "Trust", "Reference"]
    assert max(longest(group) for group in groups) <= 8
    assert longest([{"a": ["b.md", {"c": ["d.md"] * 9}]}]) == 9


def test_the_site_asks_the_network_for_nothing():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert config["theme"]["font"] is False
    assert "offline" in config["plugins"]
    assert any("iframe-worker" in script for script in config["extra"]["polyfills"])
    added = config["extra"]["polyfills"] + config["extra_css"] + config.get("extra_javascript", [])
    for name in added:
        text = (ROOT / "docs" / name).read_text()
        assert "http" not in text
        assert "@import" not in text


def test_every_public_name_has_its_place_in_the_reference():
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    entries = Counter(
        path
        for page in pages
        for path in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    )
    public = [
        f"dpcore_attacks.{dpcore._OF_ATTACKS[name]}.{name}"
        if name in dpcore._OF_ATTACKS
        else f"{module}.{name}"
        for module, names in public_names().items()
        for name in names
    ]
    assert {path: entries[path] for path in public} == dict.fromkeys(public, 1)


def test_the_page_on_stability_lists_the_public_names_of_modules():
    text = (ROOT / "docs" / "stability.md").read_text()
    rows = re.findall(r"^\| `(dpcore[\w.]*)` \| (.*) \|$", text, re.MULTILINE)
    listed = {module: re.findall(r"`(\w+)`", names) for module, names in rows}
    public = {module: [*names] for module, names in public_names().items()}
    assert listed == {module: public[module] for module in public if module != "dpcore"}


TEXTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
    *sorted(ROOT.glob("examples/**/README.md")),
]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S))


def anchors_of(page):
    """The anchors of a page's headings, as Python-Markdown's `toc` makes them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    found = set()
    for title in re.findall(r"^#+ +(.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        kept = re.sub(r"[^\w\s-]", "", ascii_only).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", kept))
    return found


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in LINK.findall(without_code(page.read_text())):
        if link.startswith("https://"):
            continue
        path, _, largest_finite_loss = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_file(), f"{page.name} links to {link}, which is no file"
        assert not largest_finite_loss or largest_finite_loss in anchors_of(there), (
            f"{page.name}: no heading for {link}"
        )


def test_links_with_a_wrong_anchor_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One thing\n\n```text\n# no heading\n```\n\n## T1: a ball, `R`\n")
    assert anchors_of(page) == {"one-thing", "t1-a-ball-r"}
    assert LINK.findall(without_code("[a](b.md#c) and `[x](y)`\n```md\n[p](q)\n```\n")) == [
        "b.md#c"
    ]


OLD_PATHS = {"migrating.md", "moved-names.md", "CHANGELOG.md"}  # these name what is no longer there
SOURCES = sorted(
    path
    for folder in ("dpcore", "plugins", "tests", "tools", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
)
PACKAGES = {path.name: path for path in [ROOT / "dpcore", *ROOT.glob("plugins/*/dpcore_*")]}
DOTTED = re.compile(rf"(?<![\w./-])(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
SLASHED = re.compile(r"(?<![\w./-])(?:dpcore|plugins|tests|tools|benchmarks)/[\w/-]+\.py\b")


def prose_of(path):
    """What is in triple quotes or after # in a Python file; of a page what is in no fence."""
    text = path.read_text()
    if path.suffix != ".py":
        return FENCE.sub("", text)
    comments = re.findall(r"#.*$", text, re.MULTILINE)
    return "\n".join([*comments, *re.findall(r'"""(.*?)"""', text, re.DOTALL)])


@cache
def leads_somewhere(name):
    """Whether a dotted path is a module, or ends with words of the module that it reaches."""
    first, *parts = name.split(".")
    place = PACKAGES[first]
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    file = place / "__init__.py"
    if parts and (place / f"{parts[0]}.py").is_file():
        file = place / f"{parts.pop(0)}.py"
    return all(re.search(rf"\b{part}\b", file.read_text()) for part in parts[:1])


@pytest.mark.parametrize("kind", ["code", "pages"])
def test_paths_in_prose_lead_somewhere(kind):
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (SOURCES if kind == "code" else TEXTS)
        if path.name not in OLD_PATHS
        for text in [prose_of(path)]
        for name in [
            *(name for name in DOTTED.findall(text) if not leads_somewhere(name)),
            *(
                name
                for name in SLASHED.findall(text)
                if not ((ROOT / name).is_file() or [*ROOT.glob(f"plugins/*/{name}")])
            ),
        ]
    ]
    # A name for any name, and the file that a new plugin gets.
    assert {*lost} <= {
        "docs/stability.md: dpcore.NAME",
        "docs/conformance.md: tests/test_conformance.py",
        "docs/write-a-mechanism.md: tests/test_conformance.py",
    }


def test_a_path_that_leads_nowhere_is_seen():
    assert DOTTED.findall("as `dpcore.events.gaussian` says") == ["dpcore.events.gaussian"]
    assert not leads_somewhere("dpcore.events.gaussian")
    assert not leads_somewhere("dpcore.claims.events.gaussian.NoSuchEvent")
    assert leads_somewhere("dpcore.claims.events.gaussian.gaussian_mu")
    assert SLASHED.findall("in dpcore/events/base.py") == ["dpcore/events/base.py"]
