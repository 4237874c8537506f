"""No message holds content of a file of records, wherever such a file was given by mistake."""

import pytest
from click.testing import CliRunner

from dpcore.console.app import app

SECRET = "31.4159"
FILES = {
    "a CSV": f"age,name\n{SECRET},Smith\n",
    "one line": f"Patient Smith, {SECRET}\n",
    "no header": f"Smith,{SECRET}\n" * 50,
    "quotes": f'"Smith" {SECRET}\n',
    "one long line": "Smith " + f"{SECRET};" * 20_000,
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
@pytest.mark.parametrize("command", ["check", "run", "audit", "reproduce", "falsify"])
def test_records_in_place_of_a_spec(tmp_path, content, command):
    (tmp_path / "people.csv").write_text(content)
    done = CliRunner().invoke(app, [command, str(tmp_path / "people.csv")])
    assert done.exit_code == 2, done.output
    assert SECRET not in done.output
    assert "Smith" not in done.output
    assert len(done.output) < 400
