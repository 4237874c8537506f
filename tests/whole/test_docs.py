"""Every example in the documentation runs."""

import re
from pathlib import Path

import pytest

from dpcore.spec.spec import spec_of_text

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").glob("**/*.md"))
        if page.name not in ("write-a-plugin.md", "embedding.md")
    ),
]  # the former is executed step by step by test_write_a_plugin, the latter by test_bridge_docs
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [
        pytest.param(match[2], id=f"{page.name}:{match.start()}")
        for page in PAGES
        for match in FENCE.finditer(page.read_text())
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


def test_the_pages_have_examples():
    assert len(blocks("python")) >= 4
    assert len(blocks("yaml")) >= 2


def test_every_page_is_in_the_navigation():
    import yaml

    listed = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    names = [entry if isinstance(entry, str) else next(iter(entry.values())) for entry in listed]
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("**/*.md")]
    assert sorted(names) == sorted(pages)
