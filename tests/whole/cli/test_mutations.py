"""10,000 mutated specs and 2,000 mutated data files: an exit code that is listed, one bounded line,
no value of a record, under 5 seconds of the processor and 500 MB each, no internal error.
"""

import os
import shutil
import sys
from itertools import chain, islice

import pytest
from click.testing import CliRunner

from dpcore.console.app import app
from dpcore.errors import LONGEST_MESSAGE

from whole.cli.mutations import SHIPPED, command, specs, tables, tried, yardstick

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it forks"),
]
SPECS = int(os.environ.get("DPCORE_MUTANTS", "10000"))
SEED = int(os.environ.get("DPCORE_SEED", "1"))
PARTS = 8  # of the specs, for as many workers
SECONDS, MEMORY = 5, 500 * 10**6


def faults(done, codes):
    """What is wrong with how a command ended."""
    lines = done.err.strip().splitlines()
    if done.code not in codes:
        yield f"exit code {done.code}"
    if done.code and len(lines) != 1:
        yield f"{len(lines)} lines of error"
    if any(len(line) > LONGEST_MESSAGE + 300 for line in lines):
        yield "a long line"
    if "internal error" in done.err or "Traceback" in done.err:
        yield "an internal error"
    if done.seconds > SECONDS:
        yield f"{done.seconds:.1f} seconds"
    if done.memory > MEMORY:
        yield f"{done.memory / 1e6:.0f} MB"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """What a child need not import again."""
    copy = tmp_path_factory.mktemp("shipped") / "s.yaml"
    for path in SHIPPED:
        copy.write_bytes(path.read_bytes())
        CliRunner().invoke(app, ["check", str(copy)])


@pytest.fixture
def warm(imported, tmp_path):
    """Where a child works."""
    return tmp_path


def kept(folder, number, raw):
    """Where a mutant that failed can be looked at again."""
    if "DPCORE_KEEP" in os.environ:
        folder = type(folder)(os.environ["DPCORE_KEEP"])
    (folder / f"mutant-{number}.yaml").write_bytes(raw)


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_specs_are_priced_or_refused_in_one_line(warm, part):
    scale, wrong, codes = yardstick(), [], {}
    for number, raw in enumerate(islice(specs(f"{SEED}-{part}"), SPECS // PARTS)):
        path = warm / "s.yaml"
        path.write_bytes(raw)
        (warm / "s.lock.json").unlink(missing_ok=True)
        done = tried(command("check", path), warm, scale)
        codes[done.code] = codes.get(done.code, 0) + 1
        if found := [*faults(done, {0, 2, 3, 4})]:
            kept(warm, number, raw)
            wrong.append(f"{number}: {'; '.join(found)}: {done.err[:300]}")
            print(wrong[-1], flush=True)
    print(codes)
    assert not wrong, "\n".join(wrong)
    assert SPECS < 1000 * PARTS or {0, 2, 3} <= {*codes}


SPEC = b"""\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {a: [-100, 100], b: [-1, 1], c: [no, yes], d: {categories: [1, 2, 3]}}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: random_features.ridge, features: identity, regularization: 0.5}
  mechanism: gaussian
"""
SECRETS = [f"31.41{i:02d}7" for i in range(40)]  # values of records; no message may show one


def test_mutated_data_are_released_or_refused_without_any_value(warm):
    rows = [
        f"{SECRETS[i]},0.{i:02d}5,{('no', 'yes')[i % 2]},{1 + i % 3},-0.{i:02d}" for i in range(40)
    ]
    good = ("a,b,c,d,y\n" + "\n".join(rows) + "\n").encode()
    (warm / "s.yaml").write_bytes(SPEC)
    (warm / "people.csv").write_bytes(good)
    arguments = ("run", warm / "s.yaml", "--runs", warm / "runs")
    scale, wrong, codes = yardstick(), [], {}
    for number, raw in enumerate(chain([good], islice(tables(SEED, good), SPECS // 5))):
        (warm / "people.csv").write_bytes(raw)
        done = tried(command(*arguments), warm, scale)
        codes[done.code] = codes.get(done.code, 0) + 1
        found = [*faults(done, {0, 5})]
        if any(secret in done.err + done.out for secret in SECRETS):
            found.append("a value of a record")
        if bool(done.code) == bool([*warm.glob("runs/*")]):
            found.append("published, or not")
        if found:
            kept(warm, number, raw)
            wrong.append(f"{number}: {'; '.join(found)}: {done.err[:300]}")
            print(wrong[-1], flush=True)
        shutil.rmtree(warm / "runs", ignore_errors=True)
    print(codes)
    assert not wrong, "\n".join(wrong)
    assert {0, 5} <= {*codes}


@pytest.mark.parametrize("seed", [11, 12])
def test_a_sample_of_mutants_through_the_command_itself(tmp_path, seed):
    """As one's shell would run it: imports and the interpreter's end are part of it."""
    scale = yardstick()
    for raw in islice(specs(seed), 20):
        path = tmp_path / "s.yaml"
        path.write_bytes(raw)

        def shell(path=path):
            code = "from dpcore.console import main; main()"
            os.execv(sys.executable, [sys.executable, "-c", code, "check", str(path)])

        done = tried(shell, tmp_path, scale)
        assert [*faults(done, {0, 2, 3, 4})] == [], (raw, done)
