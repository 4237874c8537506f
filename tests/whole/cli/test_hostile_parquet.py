"""500 hostile Parquet files: released or refused, no value of a record in any message, no internal
error, under 5 seconds of the processor and 500 MB each.
"""

import os
import shutil
import sys
from itertools import islice

import pytest
from click.testing import CliRunner

from dpcore.console.app import app

from whole.cli.mutations import command, tried, yardstick
from whole.cli.test_mutations import SPEC, faults

pytest.importorskip("pyarrow")
from whole.cli.hostile_parquet import SECRETS, files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it forks"),
]
FILES = int(os.environ.get("DPCORE_PARQUET", "500"))
SEED = int(os.environ.get("DPCORE_SEED", "1"))


@pytest.mark.parametrize("on_invalid", ["refuse", "project"])
def test_hostile_files_are_released_or_refused_without_any_value(tmp_path, on_invalid):
    spec = SPEC.replace(b"people.csv", b"people.parquet")
    (tmp_path / "s.yaml").write_bytes(spec + f"on_invalid: {on_invalid}\n".encode())
    CliRunner().invoke(app, ["check", str(tmp_path / "s.yaml")])  # imports
    arguments = ("run", tmp_path / "s.yaml", "--runs", tmp_path / "runs")
    scale, wrong, codes = yardstick(), [], {}
    for number, raw in enumerate(islice(files(f"{SEED}-{on_invalid}"), FILES // 2)):
        (tmp_path / "people.parquet").write_bytes(raw)
        done = tried(command(*arguments), tmp_path, scale)
        codes[done.code] = codes.get(done.code, 0) + 1
        violations = [*faults(done, {0, 5})]
        if any(secret in done.err + done.out for secret in SECRETS):
            violations.append("a value of a record")
        if bool(done.code) == bool([*tmp_path.glob("runs/*")]):
            violations.append("published, or not")
        if number == 0 and done.code:
            violations.append("the right file is refused")
        if violations:
            wrong.append(f"{number}: {'; '.join(violations)}: {done.err[:300]}")
            print(wrong[-1], flush=True)
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    print(codes)
    assert not wrong, "\n".join(wrong)
    assert {0, 5} <= {*codes}
