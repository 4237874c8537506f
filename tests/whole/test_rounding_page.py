"""docs/records/small-numbers.md lists each small number of modules that decide guarantees."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "records" / "small-numbers.md").read_text()
ROOMS = "claims domain encoding functions learners ledger metrics models private transcript"
# no guarantee rests on them
TOOLS = ["attacks", "bridges", "engines", "experiments", "report", "verify"]
SMALL = 1e-3


def modules():
    """Path by name, as the page writes it: `claims/events/poisson`, `dpcore_ntk/neurons`."""
    for room in ROOMS.split():
        for path in (ROOT / "dpcore" / room).rglob("*.py"):
            yield str(path.relative_to(ROOT / "dpcore").with_suffix("")), path
    for path in (ROOT / "dpcore").glob("*.py"):
        yield f"dpcore/{path.stem}", path
    for plugin in (ROOT / "plugins").glob("*/dpcore_*"):
        if plugin.parent.name in TOOLS:
            continue
        for path in plugin.rglob("*.py"):
            yield str(path.relative_to(plugin.parent).with_suffix("")), path


def is_negative_power(node):
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    minus = power and isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
    return minus and isinstance(node.right.operand, ast.Constant)


def numbers(source):
    """Literals in (0, 1/1000], and powers of 2 with a negative literal exponent."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            if 0 < node.value <= SMALL:
                found.add(ast.get_source_segment(source, node))
        elif is_negative_power(node):
            found.add(f"2**-{node.right.operand.value}")
    return found


def listed():
    section = PAGE.split("## Every small number in the code")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \| (.+) \|$", section, re.MULTILINE)
    assert len(rows) == len({name for name, *_ in rows})
    return {name: ({*re.findall(r"`([^`]+)`", report)}, why) for name, report, why in rows}


def test_every_small_number_is_listed_with_its_reason():
    found = {name: numbers(path.read_text()) for name, path in modules()}
    assert {name for name, _ in modules()} >= {*listed()}
    for name, own in found.items():
        report, why = listed().get(name, (set(), "none"))
        assert own == report, f"small-numbers.md, {name}: {own ^ report}"
        assert why.strip(), name


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1e-9 + 0.5", {"1e-9"}),
        ("x = -3e-4", {"3e-4"}),
        ("x = 2.0**-40", {"2**-40"}),
        ("x = 2**-bits", set()),
        ("x = y**-1", {"2**-1"}),
        ("x = 0.0", set()),
    ],
)
def test_what_counts_as_a_small_number(source, expected):
    assert numbers(source) == expected
