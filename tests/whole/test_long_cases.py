"""The list of long cases names tests that exist."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_long_case_is_of_a_test_that_exists():
    listed = (ROOT / "tests" / "long.txt").read_text().splitlines()
    assert listed == sorted(set(listed))
    for case in listed:
        path, _, name = case.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), case
