"""A hundred wrong commands of people who are new here, each with the way out it must be reported.

Every entry is a command, the exit code, and a pattern that names the key, the option, the command
or the name that mends it. `w.yaml` is the spec of the entry; the other files are `lay_out`'s.
"""

import gzip
import zipfile
from pathlib import Path

import attrs

SPEC = """\
dpcore: 1
data:
  source: people.csv
  domain:
    records: private
    columns:
      age: [18, 100]
      income: [0, 1000]
      smoker: ["no", "yes"]
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
releases:
  - {name: size, learner: statistics.count, mechanism: discrete_gaussian}
  - {name: incomes, learner: {name: statistics.mean, column: income}, mechanism: gaussian}
"""
FIT = """\
dpcore: 1
data:
  source: people.csv
  target: income
  domain:
    records: 40
    columns: {age: [18, 100], smoker: ["no", "yes"]}
    target: [0, 1000]
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-6}
release: {learner: linear.staged_gradient, mechanism: gaussian}
"""
MEAN = SPEC.replace("statistics.count", "{name: statistics.mean, column: age}").replace(
    "discrete_gaussian", "gaussian"
)
EVENTS = "adjacency: add_remove\nevents:\n  - {event: gaussian, mu: 1}\n"


@attrs.frozen
class Wrong:
    """A command that is wrong.

    Args:
        words: The command line.
        way: A pattern that its one line must hold: what to set or to run instead.
        code: The exit code.
        spec: What `w.yaml` holds.
        longest: Characters of the line; a ledger gives the reason of every filter.
    """

    words: str
    way: str
    code: int = 2
    spec: str = SPEC
    longest: int = 300


def spec(way, *changes, text=SPEC, code=2, words="check w.yaml", longest=300):
    """A spec that is wrong in some words."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return Wrong(words, way, code, text, longest)


def data(way, *changes, text=SPEC):
    """A spec that does not fit its data."""
    return spec(way, *changes, text=text, code=5, words="run w.yaml")


COMMANDS = (
    Wrong("chek s.yaml", "'check'"),
    Wrong("--verison", "--version"),
    Wrong("check", "SPEC|spec"),
    Wrong("check s.yaml fit.yaml", "fit.yaml.*dpcore check --help"),
    Wrong("check s.yaml --jsno", "--json"),
    Wrong("check s.yaml --epsilon 1", "budget: {epsilon"),
    Wrong("run s.yaml --data people.csv", "--source FILE"),
    Wrong("check s.yaml --rehearsal 3", "dpcore check --help"),
    Wrong("run s.yaml --rehearsal yes", "--rehearsal.*(integer|whole number)"),
    Wrong("run s.yaml --memory lots", "4GB"),
    Wrong("run s.yaml --work many", "1e15"),
    Wrong("check s.yaml --expected-records 0", "--expected-records.*1"),
    Wrong("run s.yaml --local-cluster 2", "--engine"),
    Wrong("run s.yaml --engine dusk", "'dask'"),
    Wrong("--quiet --verbose check s.yaml", "--quiet"),
    Wrong("report", "RUN"),
    # a path to something else
    Wrong("check folder", "folder.*(spec|YAML)"),
    Wrong("check https://example.org/s.yaml", "(URL|address).*(download|file)"),
    Wrong("check book.xlsx", "(Excel|spreadsheet|workbook).*(spec|YAML)"),
    Wrong("check people.csv", "dpcore init people.csv"),
    Wrong("check people.csv.gz", "(gzip|compressed).*(spec|YAML)"),
    Wrong("check empty.yaml", "empty.*(examples|dpcore: 1)"),
    Wrong("check noise.bin", "spec|YAML"),
    Wrong("check runs/s-0001", "dpcore (replay|report)"),
    Wrong("check spec.yaml", "no such file.*s.yaml"),
    Wrong("check nowhere/at/all.yml", "no such file.*examples"),
    Wrong("check s.lock.json", "s.yaml|spec"),
    Wrong("run s.yaml --source https://example.org/a.csv", "(URL|address).*(download|file)", 5),
    Wrong("run s.yaml --source book.xlsx", "(Excel|workbook).*CSV", 5),
    Wrong("run s.yaml --source folder", "folder.*name a file", 5),
    Wrong("run s.yaml --source peopel.csv", "people.csv", 5),
    Wrong("run s.yaml --source empty.csv", "header", 5),
    Wrong("run s.yaml --source people.csv.gz", "(gzip|compressed).*(unpack|CSV)", 5),
    Wrong("run s.yaml --source s.yaml", "CSV", 5),
    Wrong("run s.yaml --source noise.bin", "UTF-8|CSV", 5),
    Wrong("run s.yaml --source sklearn:diabets", "'diabetes'", 5),
    Wrong("replay s.yaml", "run folder", 1),
    Wrong("replay runs", "runs/s-0001", 1),
    Wrong("replay runs/s-0007", "runs/s-0001", 1),
    Wrong("replay runs/s-0001/public", "runs/s-0001", 1),
    Wrong("report nobody", "dpcore ledger list|people", 1),
    Wrong("report s.yaml", "dpcore run|run folder", 1),
    Wrong("report runs/s-0009", "runs/s-0001", 1),
    # a spec with a mistake
    spec("'budget'", ("budget:", "bugdet:")),
    spec("'epsilon'", ("epsilon: 1", "epsilons: 1")),
    spec("budget.epsilon.*number", ("epsilon: 1", "epsilon: '1'")),
    spec("budget.*epsilon > 0", ("epsilon: 1", "epsilon: -1")),
    spec("delta", (", delta: 1e-6", ""), code=3),
    spec("'add_remove'", ("add_remove", "add-remove")),
    spec("add_remove", ("add_remove", "persons")),
    spec("'learner' is missing", ("learner: statistics.count, ", "")),
    spec("'statistics.count'", ("statistics.count", "statistics.cuont")),
    spec("'statistics.count'", ("statistics.count", "count")),
    spec("'gaussian'", ("mechanism: gaussian", "mechanism: gausian")),
    spec(
        "l2.*Gaussian|gaussian", ("mechanism: gaussian", "mechanism: exponential"), text=FIT,
        code=2,
    ),
    spec("\\[18, 100\\]", ("[18, 100]", "[100, 18]")),
    spec("columns.age.*(low, high|\\[low|range)", ("[18, 100]", "18")),
    spec("\\[false, true\\]", ('["no", "yes"]', "boolean")),
    spec("list of texts", ('["no", "yes"]', "[1]")),
    spec("people: {column", ("add_remove", "{person: {adjacency: add_remove, records: 3}}")),
    spec("private|at_most", ("private", "many")),
    spec("add_remove|at_most", ("add_remove", "replace_one")),
    spec("'income'", ("column: income", "column: incom")),
    spec("smoker.*(range|number)|income", ("column: income", "column: smoker")),
    spec("'column'", ("column: income", "colum: income")),
    spec("'smoker'", ("statistics.count,", "{name: statistics.count, where: {smokr: ['yes']}},")),
    spec("name.*'size'|size.*another", ("name: incomes", "name: size")),
    spec("share.*> 0", ("name: size,", "name: size, share: -1,")),
    spec(
        "line|twice|duplicate",
        ("adjacency: add_remove", "adjacency: add_remove\nadjacency: add_remove"),
    ),
    spec("tab|spaces|blank", ("  source", "\tsource")),
    spec("\\]|closed|bracket", ("[18, 100]", "[18, 100")),
    spec("dpcore: 1|needs 1", ("dpcore: 1", "dpcore: 2")),
    spec("'dpcore'", ("dpcore: 1\n", "")),
    spec("'mse'", text=f"{FIT}evaluate: {{holdout: 0.2, metrics: [mes]}}\n"),
    spec("data.target|target", text=f"{SPEC}evaluate: {{holdout: 0.2, metrics: [mse]}}\n"),
    spec(
        "records", ("records: 40", "records: private"), ("replace_one", "add_remove"), text=FIT,
        code=3,
    ),
    spec(
        "quantiles",
        ("statistics.mean, column", "statistics.quantiles, quantiles: [50], column"),
        ("mechanism: gaussian", "mechanism: exponential"),
    ),
    data(
        "'weight'.*(header|columns)|age, income",
        ("income: [0, 1000]", "income: [0, 1000]\n      weight: [1, 300]"),
    ),
    data("on_invalid: project", ("[18, 100]", "[216, 1200]")),
    data("expected|records: ", ("records: 40", "records: 41"), text=FIT),
    data("categories|on_invalid", ('["no", "yes"]', "[0, 1]")),
    data("'wage'.*(declare|header)", ("target: income", "target: wage"), text=FIT),
    data("delimiter", ("source: people.csv", "source: semicolons.csv")),
    # ledgers
    Wrong("ledger create mine", "--epsilon"),
    Wrong(
        "ledger create people --epsilon 1 --delta 1e-5 --adjacency add_remove",
        "dpcore ledger show people|another name", 4,
    ),
    Wrong("ledger create mine --epsilon 1 --delta 1e-5 --adjacency replace", "replace_one"),
    Wrong("ledger create mine --epsilon one --delta 1e-5 --adjacency add_remove", "--epsilon"),
    Wrong("ledger create mine --epsilon 1 --delta 1 --adjacency add_remove", "--delta"),
    Wrong(
        "ledger create mine --epsilon 1 --delta 1e-5 --adjacency person",
        "--adjacency.*\\{person",
    ),
    Wrong("ledger show nobody", "dpcore ledger (create|list)"),
    Wrong("ledger show peopel", "'people'"),
    Wrong("ledger plan people --share half", "LABEL=WEIGHT"),
    Wrong("ledger plan people --releases 0", "--releases.*1 or more"),
    Wrong("ledger verify people --run s.yaml", "run folder", 4),
    Wrong("ledger shwo people", "'show'"),
    spec("'people'|dpcore ledger create", text=f"{SPEC}ledger: persons\n"),
    spec(
        "adjacency: add_remove", ("{name: size,", "{name: size, share: 2,"), ("private", "40"),
        ("add_remove", "replace_one"), text=f"{MEAN}ledger: people\n", code=4, words="run w.yaml",
    ),
    spec(
        "`epsilon: [01]", ("epsilon: 1", "epsilon: 9"), text=f"{MEAN}ledger: people\n", code=4,
        words="run w.yaml", longest=420,
    ),
    # what plugins bring
    Wrong("plugins show lineer", "'linear'"),
    Wrong("plugins enable pandas", "dpcore plugins list|pip install"),
    Wrong("plugins new My_Plugin --kind learner", "hyphens"),
    Wrong("plugins new mine --kind lerner", "'?learner"),
    Wrong("plugins new linear --kind learner", "another name"),
    Wrong("examples show clinic", "statistics.clinic"),
    Wrong("examples copy statistics.clinik", "statistics.clinic"),
    Wrong("examples copy statistics.clinic mine.yaml", "folder"),
    Wrong("examples copy statistics.clinic people.csv", "folder"),
    Wrong("test lineer", "'linear'"),
    Wrong("test linear --effort lots", "--effort.*number"),
    Wrong("audit people.csv", "spec|data.source|--source"),
    Wrong("audit s.yaml --confidence 2", "--confidence|confidence"),
    Wrong("falsify nowhere.yaml", "no such file"),
    Wrong("reproduce table_1", "/table_?1|--list"),
    Wrong("reproduce", "--list"),
    Wrong("reproduce s.yaml", "dpcore run|run it instead"),
    Wrong("theory kernel", "dpcore theory"),
    Wrong("theory kernel_ridge/nothing", "dpcore theory|kernel_ridge/"),
    Wrong("describe gausian", "'gaussian'"),
    Wrong("describe", "COMPONENT|component"),
    Wrong("account people.csv --delta 1e-6", "adjacency|events"),
    Wrong("account events.yaml --delta 2", "--delta"),
    Wrong("schema s.yaml", "dpcore schema --help"),
)  # fmt: skip


def lay_out(folder: Path) -> None:
    """The files that the commands name."""
    rows = [f"{20 + i},{i * 25},{'yes' if i % 3 else 'no'}" for i in range(40)]
    table = "\n".join(["age,income,smoker", *rows, ""])
    texts = {
        "people.csv": table,
        "semicolons.csv": table.replace(",", ";"),
        "empty.csv": "",
        "empty.yaml": "",
        "s.yaml": SPEC,
        "fit.yaml": FIT,
        "events.yaml": EVENTS,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "folder").mkdir()
    (folder / "people.csv.gz").write_bytes(gzip.compress(table.encode()))
    (folder / "noise.bin").write_bytes(bytes(range(255, -1, -1)) * 4)
    with zipfile.ZipFile(folder / "book.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
