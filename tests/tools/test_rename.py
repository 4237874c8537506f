"""Plugins are rewritten after modules and names moved, and nothing else in them changes."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "rename.py"
ROWS = """
module lib.running.plan lib.claims.plan.plan
module lib.events lib.claims.events
module lib.events.text lib.ledger.event_text
module lib.shown lib_report.shown
name lib.events.base:Spread lib.claims.noise:Distribution
name lib.events.base:Event lib.claims.event:Event
name lib.query:look lib.query:paid_evaluation
name lib:Bars lib.models:Bars
"""


@pytest.fixture(scope="module")
def rename():
    spec = importlib.util.spec_from_file_location("rename", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["rename"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["rename"]


@pytest.fixture
def moved(rename, tmp_path):
    def rewriting(text, suffix=".py", rows=ROWS, texts=True):
        path = tmp_path / "rows.tsv"
        path.write_text(rows.strip().replace(" ", "\t"), "utf-8")
        table = rename.Table.load(path)
        rewriting = rename.rewrite(table, text, suffix, texts)
        if not table.chained:
            again = rename.rewrite(table, rewriting.result(), suffix, texts)
            assert again.result() == rewriting.result()
        return rewriting

    return rewriting


CASES = {
    "a module": (
        "from lib.running.plan import Plan, other as x\n",
        "from lib.claims.plan.plan import Plan, other as x\n",
    ),
    "what lies below a package": (
        "from lib.events.gaussian import GaussianEvent\n",
        "from lib.claims.events.gaussian import GaussianEvent\n",
    ),
    "the longer row": (
        "from lib.events.text import write\nfrom lib.events import text\ntext.write\n",
        "from lib.ledger.event_text import write\nfrom lib.ledger import event_text\n"
        "event_text.write\n",
    ),
    "names of several modules": (
        "def f():\n    from lib.events.base import Event, Direction, Spread as S  # noqa: F401\n",
        "def f():\n    from lib.claims.event import Event  # noqa: F401\n"
        "    from lib.claims.events.base import Direction  # noqa: F401\n"
        "    from lib.claims.noise import Distribution as S  # noqa: F401\n",
    ),
    "brackets over lines": (
        "if TYPE_CHECKING:\n    from lib.events.base import (\n        Event,\n"
        "        Direction,\n    )\n",
        "if TYPE_CHECKING:\n    from lib.claims.event import Event\n"
        "    from lib.claims.events.base import Direction\n",
    ),
    "brackets whose module alone moves": (
        "from lib.events.g import (  # why\n    A,\n    B,  # b\n)\n",
        "from lib.claims.events.g import (  # why\n    A,\n    B,  # b\n)\n",
    ),
    "one line of two statements": (
        "x = 1; from lib.events.base import Event, Direction; y = 2\n",
        "x = 1; from lib.claims.event import Event; "
        "from lib.claims.events.base import Direction; y = 2\n",
    ),
    "a module as a name": (
        "from lib.running import plan\nplan.Plan()\n",
        "from lib.claims.plan import plan\nplan.Plan()\n",
    ),
    "a plain import and its uses": (
        "import lib.running.plan\nlib.running.plan.Plan(lib.query.Query)\n",
        "import lib.claims.plan.plan\nlib.claims.plan.plan.Plan(lib.query.Query)\n",
    ),
    "a plain import of another package": (
        "import lib.shown\nlib.shown.show(lib.Plan)\n",
        "import lib_report.shown\nimport lib\nlib_report.shown.show(lib.Plan)\n",
    ),
    "a plain import with a name that went elsewhere": (
        "import lib.events.base\nx = lib.events.base.Spread, lib.events.base.Direction\n",
        "import lib.claims.events.base\nimport lib.claims.noise\n"
        "x = lib.claims.noise.Distribution, lib.claims.events.base.Direction\n",
    ),
    "a module under a name of its own": (
        "import lib.events.base as base\nbase.Direction, base.Event\n",
        "import lib.claims.events.base as base\nimport lib.claims.event\n"
        "base.Direction, lib.claims.event.Event\n",
    ),
    "an attribute with a new name": (
        "from lib import query\nquery.look(query.other)\n",
        "from lib import query\nquery.paid_evaluation(query.other)\n",
    ),
    "a public name": (
        "import lib\nlib.Bars, lib.Plan\n",
        "import lib\nimport lib.models\nlib.models.Bars, lib.Plan\n",
    ),
    "a public name among those that stay": (
        "from lib import Bars, Plan\nBars(Plan)\n",
        "from lib import Plan\nfrom lib.models import Bars\nBars(Plan)\n",
    ),
    "uses of a name": (
        "from lib.query import look\n\n\ndef f(x: 'look', y: \"list[look]\" = look):\n"
        "    return [look(z).look for z in x]\n",
        "from lib.query import paid_evaluation\n\n\n"
        "def f(x: 'paid_evaluation', y: \"list[paid_evaluation]\" = paid_evaluation):\n"
        "    return [paid_evaluation(z).look for z in x]\n",
    ),
    "uses of a name that is shadowed elsewhere": (
        "from lib.query import look\n\n\ndef f(look):\n    return look\n\n\n"
        "class A:\n    def g(self):\n        look = 1\n\n    def h(self, y=look):\n"
        "        return look, [look for look in ()]\n",
        "from lib.query import paid_evaluation\n\n\ndef f(look):\n    return look\n\n\n"
        "class A:\n    def g(self):\n        look = 1\n\n    def h(self, y=paid_evaluation):\n"
        "        return paid_evaluation, [look for look in ()]\n",
    ),
    "an attribute of the same name": (
        "from lib.query import look\nclass A:\n    look = look\n",
        "from lib.query import paid_evaluation as look\nclass A:\n    look = look\n",
    ),
    "a field named as its module": (
        "from lib import query\nclass A:\n    query: query.look\n",
        "from lib import query\nclass A:\n    query: query.paid_evaluation\n",
    ),
    "a lazy import": (
        "def f():\n    from lib.query import look\n\n    return look()\n\n\n"
        "def g(look):\n    look()\n",
        "def f():\n    from lib.query import paid_evaluation\n\n    return paid_evaluation()\n\n\n"
        "def g(look):\n    look()\n",
    ),
    "a name that is taken": (
        "from lib.query import look\npaid_evaluation = 1\nlook()\n",
        "from lib.query import paid_evaluation as look\npaid_evaluation = 1\nlook()\n",
    ),
    "a name with a substitute": (
        "try:\n    from lib.query import look\nexcept ImportError:\n    look = None\nlook\n",
        "try:\n    from lib.query import paid_evaluation as look\n"
        "except ImportError:\n    look = None\nlook\n",
    ),
    "a name that a module exports": (
        "from lib.query import look\n__all__ = ['look']\n",
        "from lib.query import paid_evaluation as look\n__all__ = ['look']\n",
    ),
    "paths in strings": (
        "patch('lib.events.base.Spread.draw')\nimport_module(\"lib.events.base\")\n"
        "x = f'lib.events.{name}', 'lib.events.base:Event', 'glib.events', 'lib.eventsx'\n",
        "patch('lib.claims.noise.Distribution.draw')\nimport_module(\"lib.claims.events.base\")\n"
        "x = f'lib.claims.events.{name}', 'lib.claims.event:Event', 'glib.events', 'lib.eventsx'\n",
    ),
    "code in strings": (
        "code = 'import x\\nfrom lib.events.base import Event, Direction\\nlib.events.a'\n",
        "code = 'import x\\nfrom lib.claims.event import Event; "
        "from lib.claims.events.base import Direction\\nlib.claims.events.a'\n",
    ),
    "paths in patterns": (
        "match(r'lib\\.events\\.base'), match('lib\\\\.events'), match(r'\\w\\.events')\n",
        "match(r'lib\\.claims\\.events\\.base'), match('lib\\\\.claims\\\\.events'), "
        "match(r'\\w\\.events')\n",
    ),
    "paths of files": (
        "# lib/running/plan.py, src/lib/events/ and lib/events/data.json\n",
        "# lib/claims/plan/plan.py, src/lib/claims/events/ and lib/claims/events/data.json\n",
    ),
    "letters that take several bytes": (
        "x = 'é'; from lib.query import look; y = 'é', look\n",
        "x = 'é'; from lib.query import paid_evaluation; y = 'é', paid_evaluation\n",
    ),
    "lines of another system": (
        "from lib.events.base import Event, Direction\r\nx = 1\r\n",
        "from lib.claims.event import Event\r\nfrom lib.claims.events.base import Direction\r\n"
        "x = 1\r\n",
    ),
    "what is no import of ours": (
        "from . import plan\nrunning = object()\nrunning.plan\nlook = 1\n",
        "from . import plan\nrunning = object()\nrunning.plan\nlook = 1\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_names_the_new_place(case, moved):
    before, after = CASES[case]
    assert moved(before).result() == after


TEXTS = {
    ".md": (
        "The class `lib.events.base.Event`:\n\n```python\nfrom lib.query import look\n```\n\n"
        "Then look:\n\n```python\nlook()\n```\n\n::: lib.running.plan\n",
        "The class `lib.claims.event.Event`:\n\n```python\nfrom lib.query import paid_evaluation\n"
        "```\n\nThen look:\n\n```python\npaid_evaluation()\n```\n\n::: lib.claims.plan.plan\n",
    ),
    ".toml": (
        '[project.entry-points."lib.plugins"]\nx = "lib.events.base:Event"\ny = "lib.events:f"\n',
        '[project.entry-points."lib.plugins"]\nx = "lib.claims.event:Event"\n'
        'y = "lib.claims.events:f"\n',
    ),
    ".yaml": (
        "a: lib.events\nb: {file: lib/events/base.py}\nc: my.lib.events\n",
        "a: lib.claims.events\nb: {file: lib/claims/events/base.py}\nc: my.lib.events\n",
    ),
    ".ipynb": (
        json.dumps({"source": ["import numpy\nfrom lib.running.plan import Plan\n"]}),
        json.dumps({"source": ["import numpy\nfrom lib.claims.plan.plan import Plan\n"]}),
    ),
    ".tmpl": (
        "from lib.events.base import Event\nfrom lib import (\n    Bars,\n    Plan,\n)\n"
        "class $name(Event): ...\n",
        "from lib.claims.event import Event\nfrom lib import Plan\nfrom lib.models import Bars\n"
        "class $name(Event): ...\n",
    ),
}


@pytest.mark.parametrize("suffix", TEXTS)
def test_a_text_names_the_new_place(suffix, moved):
    before, after = TEXTS[suffix]
    assert moved(before, suffix).result() == after


def test_a_definition_takes_its_new_name(rename):
    table = rename.Table({"lib.a": "lib.b"}, {"lib.a.look": ("lib.b", "evaluate")})
    before = "def look(n) -> 'look':\n    look.n = n\n\n\n"
    before += "class A:\n    def look(self):\n        look()\n"
    after = "def evaluate(n) -> 'evaluate':\n    evaluate.n = n\n\n\n"
    after += "class A:\n    def look(self):\n        evaluate()\n"
    for module in ("lib.a", "lib.b"):
        assert rename.rewrite(table, before, ".py", module=module).result() == after
    assert rename.rewrite(table, after, ".py", module="lib.b").result() == after
    assert rename.rewrite(table, before, ".py", module="lib.c").result() == before


def test_two_modules_swap_in_one_run(moved):
    rows = "module lib.a lib.b\nmodule lib.b lib.a"
    before = "from lib.a import x\nfrom lib.b import y\nz = 'lib.a', 'lib.b'\n"
    after = "from lib.b import x\nfrom lib.a import y\nz = 'lib.b', 'lib.a'\n"
    assert moved(before, rows=rows).result() == after


def test_a_module_becomes_a_package_of_its_own_name(moved):
    rows = "module lib.a lib.a.b\nmodule lib.c.d lib.c"
    before = "from lib.a import x\nfrom lib.c.d import y\n"
    after = "from lib.a.b import x\nfrom lib.c import y\n"
    assert moved(before, rows=rows).result() == after
    assert moved(after + "import lib.c\n", rows=rows).notes == []


NOTED = {
    "a package without a place": "import lib.running\n",
    "a part of a path": "home = {'x': 'running.plan'}\n",
    "a path of strings": "PACKAGE / 'events' / 'base.py'\n",
    "a path in another notation": "match(r'lib[.]events')\n",
    "an attribute by its name": "from lib import query\nsetattr(query, 'look', 1)\n",
    "a star": "from lib.query import *\n",
    "a comment that moves": "from lib.events.base import (\n    Event,  # why\n    Direction,\n)\n",
    "a name bound twice": "from lib.query import look\nlook = look\n",
}


@pytest.mark.parametrize("case", NOTED)
def test_what_needs_a_reader_is_listed(case, moved):
    assert moved(NOTED[case]).notes


def test_a_file_without_old_names_has_no_notes(moved):
    text = "import lib\nfrom lib.query import other\nx = 'events', 'lib.plugins', 'plan.py'\n"
    rewriting = moved(text)
    assert (rewriting.result(), rewriting.notes) == (text, [])


def folder_of(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


OLD = {"lib/__init__.py": "", "lib/a/__init__.py": "", "lib/a/base.py": "class Spread: n = 7\n"}
NEW = {"lib/__init__.py": "", "lib/c.py": "class Distribution: n = 7\n"}
PLUGIN = {
    "plugin/__init__.py": "",
    "plugin/use.py": "import lib.a.base\n\n\ndef f():\n    from lib.a.base import Spread\n\n"
    "    return Spread.n + lib.a.base.Spread.n\n",
    "plugin/test_use.py": "from unittest.mock import patch\n\nfrom plugin.use import f\n\n"
    'with patch("lib.a.base.Spread.n", 1):\n    assert f() == 2\nprint(f())\n',
}


def printed(*folders):
    process = subprocess.run(
        [sys.executable, "-m", "plugin.test_use"],
        env={"PYTHONPATH": ":".join(map(str, folders)), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    return process.stdout


def test_a_plugin_runs_before_and_after(rename, tmp_path, capsys):
    old, new = folder_of(tmp_path / "old", OLD), folder_of(tmp_path / "new", NEW)
    ours = folder_of(tmp_path / "ours", PLUGIN)
    assert (printed(old, ours), printed(new, ours)) == ("14\n", "")
    table = tmp_path / "rows.tsv"
    table.write_text("module\tlib.a.base\tlib.c\nname\tlib.a.base:Spread\tlib.c:Distribution\n")
    arguments = ["--table", str(table), str(ours)]
    assert rename.main([*arguments, "--check"]) == 1
    assert printed(old, ours) == "14\n"
    assert rename.main(arguments) == 0
    assert printed(new, ours) == "14\n"
    assert "changed" in capsys.readouterr().out
    assert rename.main([*arguments, "--check"]) == 0
    assert capsys.readouterr().out == "0 files, 0 places to look at\n"


def test_who_reads_an_import_from_its_module_is_listed(rename, tmp_path, capsys):
    files = {
        "plugin/use.py": "from lib.a import look\n",
        "plugin/test_use.py": 'patch("plugin.use.look")\n',
    }
    folder = folder_of(tmp_path / "ours", files)
    table = tmp_path / "rows.tsv"
    table.write_text("name\tlib.a:look\tlib.a:evaluate\n")
    rename.main(["--table", str(table), str(folder)])
    assert "test_use.py: use.look may be an import that is evaluate now" in capsys.readouterr().out


def test_skipped_and_hidden_files_stay(rename, tmp_path):
    text = "import lib.events\n"
    files = {"a.py": text, "b/c.py": text, ".venv/d.py": text}
    folder = folder_of(tmp_path / "ours", files)
    table = tmp_path / "rows.tsv"
    table.write_text("module\tlib.events\tlib.claims.events\n")
    rename.main(["--table", str(table), "--skip", str(folder / "b"), str(folder)])
    changed = [name for name in files if (folder / name).read_text("utf-8") != text]
    assert changed == ["a.py"]


def test_rows_that_a_second_run_repeats_need_a_word(rename, tmp_path, capsys):
    table = tmp_path / "rows.tsv"
    table.write_text("module\tlib.a\tlib.b\nmodule\tlib.b\tlib.c\n")
    file = tmp_path / "x.py"
    file.write_text("import lib.a\nimport lib.b\n")
    assert rename.main(["--table", str(table), str(file)]) == 2
    assert "lib.b" in capsys.readouterr().err
    assert rename.main(["--once", "--table", str(table), str(file)]) == 0
    assert file.read_text("utf-8") == "import lib.b\nimport lib.c\n"


@pytest.mark.parametrize(
    "row",
    ["module\tlib.a:b\tlib.c", "name\tlib.a\tlib.c:d", "modul\tlib.a\tlib.b", "module\tlib.a"],
)
def test_a_row_that_cannot_be_read_is_refused(row, rename, tmp_path):
    table = tmp_path / "rows.tsv"
    table.write_text(row)
    with pytest.raises(rename.TableError, match=r"rows\.tsv:1"):
        rename.Table.load(table)


def test_rows_may_stand_in_a_page(rename, tmp_path):
    table = tmp_path / "page.md"
    table.write_text(
        "# Page\n\n| kind | old | new |\n|---|---|---|\n| module | `lib.a` | `lib.b` |\n"
    )
    assert rename.Table.load(table).modules == {"lib.a": "lib.b"}


def test_the_table_can_be_applied_twice(rename):
    assert rename.Table.load(TOOL.with_name("renames.tsv")).chained == []
