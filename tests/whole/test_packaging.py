"""What an installation carries."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "folder",
    [".", "plugins/kernel-ridge", "plugins/linear", "plugins/random-features", "plugins/sgd"],
)
def test_the_wheel_is_complete(folder, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", tmp_path, ROOT / folder],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        if folder == ".":
            packaged = archive.read("dpcore/registry/registry.yaml")
            assert packaged == (ROOT / "registry.yaml").read_bytes()
    assert any(name.endswith("py.typed") for name in names)
    assert any(name.endswith("LICENSE") for name in names) or folder != "."
    assert not any("tests" in name.split("/") for name in names)
