"""What an installation carries: files, licence, metadata."""

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

ROOT = Path(__file__).parents[2]
FOLDERS = [
    ".",
    *sorted(str(p.parent.relative_to(ROOT)) for p in ROOT.glob("plugins/*/pyproject.toml")),
]
LICENCE = (ROOT / "LICENSE").read_bytes()


@pytest.fixture(scope="module", params=FOLDERS)
def built(request, tmp_path_factory):
    """A project's folder with its wheel and its source distribution, opened."""
    if Version(version("hatchling")) < Version("1.27"):
        pytest.skip("hatchling before 1.27 reads no list of licence files")
    target = tmp_path_factory.mktemp("built")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", target],
        cwd=ROOT / request.param,
        check=True,
        capture_output=True,
    )
    (wheel,) = target.glob("*.whl")
    (source,) = target.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened, tarfile.open(source) as archive:
        yield ROOT / request.param, opened, archive


def metadata(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_string(wheel.read(name).decode())


def test_the_wheel_is_complete(built):
    folder, wheel, _ = built
    names = wheel.namelist()
    assert any(name.endswith("py.typed") for name in names)
    assert not any("tests" in name.split("/") for name in names)
    if folder == ROOT:
        assert wheel.read("dpcore/registry/registry.yaml") == (ROOT / "registry.yaml").read_bytes()
    (package,) = {path.parent for path in folder.glob("dpcore*/__init__.py")}
    for path in package.rglob("*"):  # templates, pages and examples too
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(folder)) in names


def test_the_licence_comes_along(built):
    _, wheel, source = built
    (name,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))
    assert wheel.read(name) == LICENCE
    (top,) = {name.split("/")[0] for name in source.getnames()}
    assert source.extractfile(f"{top}/LICENSE").read() == LICENCE


def test_the_metadata_are_complete(built):
    folder, wheel, _ = built
    found = metadata(wheel)
    assert found["License-Expression"] == "Apache-2.0"
    assert found["License-File"] == "LICENSE"
    assert found["Requires-Python"] == ">=3.11"
    assert found["Author"]
    assert found["Summary"].endswith(".")
    assert len(found["Keywords"].split(",")) >= 3
    assert "Typing :: Typed" in found.get_all("Classifier")
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload().strip() == (folder / "README.md").read_text().strip()


def test_a_readme_has_no_dead_link(built):
    """No distribution is on a package index: a link is an address, or a file of the clone."""
    folder, wheel, _ = built
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", metadata(wheel).get_payload())
    places = [link for link in links if not link.startswith("https://")]
    assert [link for link in places if not (folder / link).is_file()] == []


def test_the_citation_names_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= {*cited}
