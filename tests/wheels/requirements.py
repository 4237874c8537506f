"""Print what the distributions need from others, one requirement a line; none of ours is named.

`python tests/wheels/requirements.py EXTRA ...` adds extras of the core.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def requirements(extras):
    """Every dependency that is no distribution of this repository, sorted."""
    lines = set()
    for path in [ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]:
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        lines |= {*project["dependencies"]}
        if path.parent == ROOT:
            for extra in extras:
                lines |= {*project["optional-dependencies"][extra]}
    return sorted(line for line in lines if not re.match(r"dpcore(-|$|[=<>])", line))


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
