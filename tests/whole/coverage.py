"""Writes docs/records/coverage-of-papers.md: what each numbered statement of a paper is in dpcore.

    python tests/whole/coverage.py

The lists are tests/whole/coverage.yaml, of the papers that dpcore began with, and
tests/whole/coverage_later.yaml; every name in them must be one that the plugins bring.
"""

from pathlib import Path

import yaml

from dpcore.registry.kinds import BOUND, FEATURES, LEARNER, MECHANISM
from dpcore.registry.plugin_files import shipped
from dpcore.registry.registry import Registry
from dpcore_experiments.experiment import experiments

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "records" / "coverage-of-papers.md"
PAPERS = yaml.safe_load((ROOT / "tests" / "whole" / "coverage.yaml").read_text())
LATER = yaml.safe_load((ROOT / "tests" / "whole" / "coverage_later.yaml").read_text())

HEAD = """\
# Coverage of the papers

First every numbered theorem, lemma, proposition, definition, equation, figure and table of the
papers that dpcore began with. Then what [later papers](../paper-to-plugin.md) state, as far as they
were read, with the errata that attacks found. A *statement* is computed by `dpcore theory`, an
*item* by `dpcore reproduce`, and bounds, learners and mechanisms are named as in a spec. Where
there is none of them, the last column says why. `python tests/whole/coverage.py` writes this page
from two lists whose names a test checks.
"""


def rows(numbers):
    """Number, kind, name and remark of each line of a paper."""
    for number, line in numbers.items():
        place, _, remark = line.partition("; ")
        kind, _, name = place.rpartition(" ") if " " in place else (place, "", "")
        yield number, kind, name, remark


def page():
    """The whole page, as text."""
    parts = [HEAD]
    for paper in (*PAPERS.values(), *LATER.values()):
        read, heading = paper.get("read"), "what it states" if "read" in paper else "number"
        table = [f"| {heading} | in dpcore | remark |", "|---|---|---|"]
        for number, kind, name, remark in rows(paper["numbers"]):
            table.append(f"| {number} | {f'{kind} `{name}`' if name else '-'} | {remark} |")
        paragraphs = [f"## {paper['title']}", *([read] if read else []), "\n".join(table)]
        parts.append("\n\n".join(paragraphs) + "\n")
    return "\n".join(parts)


def names_of_kinds():
    """Every name that a line may have, by its kind."""
    registry = Registry.default()
    return {
        "statement": {*shipped(registry, "theory")},
        "item": {*experiments()},
        **{kind.name: {*registry.names(kind)} for kind in (BOUND, FEATURES, LEARNER, MECHANISM)},
        "none": {""},
    }


if __name__ == "__main__":
    PAGE.write_text(page())
