"""Numbers of any magnitude in a spec are priced or refused in words, never an internal error."""

import copy
import json

import pytest
from click.testing import CliRunner

from dpcore.console.app import app
from dpcore.domain.columns import Range
from dpcore.errors import ParameterError
from dpcore.yaml.located import parse

from whole.cli.hostile_specs import FULL
from whole.cli.mutations import SHIPPED, paths, reached

MAGNITUDES = (1e160, -1e160, 1e-160, 1e308, -1e308, 5e-324, 1e77, 1e149, 1e-149, 2**63)


def numbers(spec):
    """Paths of all numbers of a spec."""
    for path in paths(spec):
        value = reached(spec, path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield path


def check(spec, folder):
    file = folder / "s.yaml"
    file.write_text(json.dumps(spec))
    (folder / "s.lock.json").unlink(missing_ok=True)
    done = CliRunner().invoke(app, ["check", str(file)])
    return done.exit_code, done.output


def put(spec, path, value):
    changed = copy.deepcopy(spec)
    reached(changed, path[:-1])[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("ends", "accepted"),
    [
        ((0, 1e160), False), ((-1e160, 0), False), ((-1e308, 0), False), ((0, 1e-160), False),
        ((0, 5e-324), False), ((1e149, 2e150), False), ((0, 1e150), True), ((0, 1e-150), True),
        ((-1e150, 1e150), True), ((1, 1 + 2**-52), True),
    ],
)  # fmt: skip
def test_a_range_has_ends_whose_squares_are_numbers(ends, accepted):
    if accepted:
        assert 0 < (ends[1] - ends[0]) ** 2 < float("inf")
        Range(*ends)
    else:
        with pytest.raises(ParameterError, match="between -1e\\+150 and 1e\\+150, at least 1e-150"):
            Range(*ends)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("data", "domain", "target", 1), 1e160, "data.domain.target: range needs ends between"),
        (("data", "domain", "target"), [0, 5e-324], "(state the column in another unit)"),
        (("data", "domain", "columns", "a", 0), -1e308, "columns.a: range needs ends between"),
        (("budget", "delta"), 5e-324, "a delta that is 0 or in [1e-300, 1)"),
        (("budget", "epsilon"), 5e-324, "an epsilon between 1e-150 and 1e+150"),
        (("budget", "epsilon"), 1e308, "an epsilon between 1e-150 and 1e+150"),
        (("release", "share"), 1e308, "a share in (0, 1e150]"),
    ],
)
def test_a_number_that_nobody_can_compute_with_is_refused_at_its_place(
    path, value, words, tmp_path
):
    code, output = check(put(FULL, path, value), tmp_path)
    assert (code, output.count("\n")) == (2, 1), output
    assert words in output


def test_a_query_whose_share_is_no_number_beside_the_others_is_refused(tmp_path):
    (path,) = (path for path in SHIPPED if path.match("dpcore_ntk/examples/regression.yaml"))
    spec = parse(path.read_text(), "s.yaml").plain()
    fraction = ("release", "mechanism", "labels", "share")
    code, output = check(put(spec, fraction, 5e-324), tmp_path)
    assert (code, output.count("\n")) == (2, 1), output
    assert "release: a query's part of the budget is below all floats" in output


@pytest.mark.slow
def test_no_magnitude_of_any_number_of_any_spec_is_an_internal_error(tmp_path):
    specs = [FULL, *(parse(path.read_text(), "s.yaml").plain() for path in SHIPPED)]
    faults = []
    for spec in specs:
        for path in numbers(spec):
            for value in MAGNITUDES:
                code, output = check(put(spec, path, value), tmp_path)
                if code not in {0, 2, 3, 4} or (code and output.count("\n") != 1):
                    faults.append((path, value, code, output[:300]))
    assert not faults
