"""The law over ways in: one record's cell in a file moves no other record through any reader.

Neighbouring files are written to disk and read by readers that infer types, with their common
options. Of each pair the frames are refused, or every other record is encoded as before, or the
premise about types is in the guarantee of that release.
"""

import csv
import functools
import itertools
import warnings
from collections import Counter
from datetime import date
from pathlib import Path

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Domain, Range
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.domain.columns import Dates, Texts
from dpcore.domain.domain import People
from dpcore.encoding.admission import admit_to
from dpcore.encoding.blocks import in_memory
from dpcore.encoding.cells import persons
from dpcore.encoding.columns import encode_column
from dpcore.errors import ParameterError, SourceError
from dpcore.registry.kinds import LEARNER
from dpcore.source import HANDED_OVER
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_statistics.count import Count

from builders import price_learner

SIZE = 40
DATES = Dates.between(date(1990, 1, 1), date(2030, 1, 1))


@attrs.frozen
class Kind:
    """A type of column: what is declared, the cells of a file, and one record's other cells."""

    rule: object
    cells: list
    misfits: tuple

    @property
    def domain(self):
        """The column as the only feature; identifiers next to a column of numbers."""
        if isinstance(self.rule, People):
            columns = {"y": Range(0, 1)}
            return Domain(columns=columns, people=self.rule, limit=10 * SIZE)
        return Domain(columns={"v": self.rule}, target="y", labels=Range(0, 1), limit=10 * SIZE)

    def encoded(self, table):
        """What every record is read as, one entry each."""
        column = table["v"]
        if isinstance(self.rule, People):
            return persons(column)
        return [row.tobytes() for row in encode_column(self.rule, column)]


def listed(write):
    return [write(place) for place in range(SIZE)]


KINDS = {
    "int": Kind(
        Range(0, 100_000), listed(lambda i: f"{45_000 + 25 * i:,}"), ("n/k", "", "1.5", "yes")
    ),
    "float": Kind(
        Range(-10, 10), listed(lambda i: f"{i / 8 - 2}"), ("n/k", "", "1,5", "-", "1_0", "0x1p3")
    ),
    "17-digit id": Kind(
        People(column="v", records=2),
        listed(lambda i: str(12345678901234567 + i)),
        ("", "n/k", "1.5", "017", "true"),
    ),
    "date": Kind(
        DATES,
        listed(lambda i: f"20{i % 20 + 10}-0{i % 9 + 1}-1{i % 10}"),
        ("", "n/k", "31/12/2020"),
    ),
    "day-first date": Kind(
        DATES,
        listed(lambda i: f"0{i % 9 + 1}/0{(i + 4) % 9 + 1}/2020"),
        ("25/03/2020", "03/25/2020", "", "n/k", "2020-01-01"),
    ),
    "bool": Kind(
        Categories(("True", "False")), listed(lambda i: str(i % 3 == 0)), ("", "yes", "1", "n/k")
    ),
    "text category": Kind(
        Categories(("Bern", "Rom", "NA")), listed(lambda i: ("Bern", "Rom", "NA")[i % 3]),
        ("", "7", "true", "2020-01-01"),
    ),
    "numeric category": Kind(
        Categories((1, 2, 1000)),
        listed(lambda i: ("1", "2", "1,000")[i % 3]),
        ("", "n/k", "x", "2.0"),
    ),
    "free text": Kind(
        Texts(12), listed(lambda i: str(i % 7)), ("", "n/k", "2020-01-01", "1.0")
    ),
}  # fmt: skip


def written(path, column):
    """A file of the column, and of numbers next to it, by an RFC 4180 writer."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["v", "y"])
        writer.writerows((cell, f"{place % 5 / 5}") for place, cell in enumerate(column))
    return path


def pandas_readers():
    pandas = pytest.importorskip("pandas")
    options = {
        "default": {},
        "thousands": {"thousands": ","},
        "decimal": {"decimal": ","},
        "parse_dates": {"parse_dates": ["v"]},
        "dayfirst": {"parse_dates": ["v"], "dayfirst": True},
        "dtype=str": {"dtype": {"v": str}},
        "numpy_nullable": {"dtype_backend": "numpy_nullable"},
        "pyarrow backend": {"dtype_backend": "pyarrow"},
        "na_values": {"na_values": ["n/k", "-"]},
        "keep_default_na": {"keep_default_na": False},
        "low_memory": {"low_memory": True, "thousands": ","},
        "engine=python": {"engine": "python", "thousands": ","},
        "engine=pyarrow": {"engine": "pyarrow"},
        "converters": {"converters": {"v": lambda cell: cell.replace(",", "")}},
        "true_values": {"true_values": ["yes", "True"], "false_values": ["no", "False"]},
        "category": {"dtype": {"v": "category"}},
        "object": {"dtype": {"v": object}},
    }
    for name, chosen in options.items():
        yield f"pandas, {name}", functools.partial(pandas.read_csv, **chosen)


def polars_readers():
    polars = pytest.importorskip("polars")
    options = {
        "default": {},
        "infer none": {"infer_schema_length": 0},
        "infer five": {"infer_schema_length": 5},
        "infer all": {"infer_schema_length": None},
        "infer five, ignore": {"infer_schema_length": 5, "ignore_errors": True},
        "dates": {"try_parse_dates": True},
        "null_values": {"null_values": ["n/k", "-"]},
        "decimal_comma": {"decimal_comma": True},
        "text": {"schema_overrides": {"v": polars.String}},
        "float": {"schema_overrides": {"v": polars.Float64}, "ignore_errors": True},
        "categorical": {"schema_overrides": {"v": polars.Categorical}},
        "missing_utf8_is_empty_string": {"missing_utf8_is_empty_string": True},
    }
    for name, chosen in options.items():
        yield f"polars, {name}", functools.partial(polars.read_csv, **chosen)
        yield f"polars, lazy, {name}", functools.partial(polars.scan_csv, **chosen)


def arrow_readers():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv

    options = {
        "default": {},
        "strings": {"column_types": {"v": pyarrow.string()}},
        "null_values": {"null_values": ["n/k", "-"], "strings_can_be_null": True},
        "timestamps": {"timestamp_parsers": ["%d/%m/%Y", "%m/%d/%Y"]},
        "dictionary": {"auto_dict_encode": True},
        "true_values": {"true_values": ["yes", "True"], "false_values": ["no", "False"]},
        "decimal_point": {"decimal_point": ","},
        "floats": {"column_types": {"v": pyarrow.float64()}},
        "decimals": {"column_types": {"v": pyarrow.decimal128(24, 4)}},
        "include_columns": {"include_columns": ["y", "v"]},
        "quoted nulls": {"strings_can_be_null": True, "quoted_strings_can_be_null": False},
        "first block": {"block_size": 64},
        "quote_char": {"quote_char": "'", "double_quote": False},
        "newlines": {"newlines_in_values": True, "ignore_empty_lines": False},
    }
    kinds = (arrow_csv.ReadOptions, arrow_csv.ParseOptions, arrow_csv.ConvertOptions)

    def read(path, chosen):
        parts = [
            kind(**{key: value for key, value in chosen.items() if hasattr(kind, key)})
            for kind in kinds
        ]
        return arrow_csv.read_csv(path, *parts)

    for name, chosen in options.items():
        yield f"pyarrow, {name}", functools.partial(read, chosen=chosen)


LIBRARIES = {"pandas": pandas_readers, "polars": polars_readers, "pyarrow": arrow_readers}


def neighbours(kind):
    """Columns that differ from the kind's in one cell, and the place of that cell."""
    for place, misfit in itertools.product((0, SIZE // 2, SIZE - 1), kind.misfits):
        yield [*kind.cells[:place], misfit, *kind.cells[place + 1 :]], place


def frame_of(reader, path):
    """What a reader makes of a file; None where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dates that it parsed in two ways
        try:
            frame = reader(path)
            return frame.collect() if hasattr(frame, "collect") else frame
        except Exception:  # whatever the library raises
            return None


def admitted(kind, frame):
    """The records as every entry point takes them; None where it refuses."""
    if frame is None:
        return None
    try:
        return kind.encoded(admit_to(kind.domain, frame, "project"))
    except SourceError:
        return None


def verdicts(reader, kind, folder, pairs):
    """Of every pair: refused, the same records, or moved, which only the premise covers."""
    first = admitted(kind, frame_of(reader, written(folder / "first.csv", kind.cells)))
    for column, place in pairs:
        second = admitted(kind, frame_of(reader, written(folder / "second.csv", column)))
        if first is None or second is None:
            yield "refused", column[place]
        else:
            same = first[:place] == second[:place] and first[place + 1 :] == second[place + 1 :]
            yield "same" if same else "premise", column[place]


# What the type of a column cannot show, and the premise says: which of two ways to write a date its
# reader chose.
HIDDEN = {"date", "day-first date"}


def require_the_law(library, kind, folder, pairs):
    counts = Counter()
    for name, reader in LIBRARIES[library]():
        for verdict, cell in verdicts(reader, KINDS[kind], folder, pairs):
            counts[verdict] += 1
            assert verdict != "premise" or kind in HIDDEN, (name, cell)
    assert counts.total() >= 12 * len(pairs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_one_cell_moves_no_number_and_no_identifier(library, kind, tmp_path):
    first_cell, *_, last_cell = neighbours(KINDS[kind])
    require_the_law(library, kind, tmp_path, [first_cell, last_cell])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_no_cell_at_any_place_moves_a_number_or_an_identifier(library, kind, tmp_path):
    require_the_law(library, kind, tmp_path, [*neighbours(KINDS[kind])])


@pytest.mark.parametrize("kind", KINDS)
def test_the_strict_reader_moves_nothing(kind, tmp_path):
    made = KINDS[kind]

    def encoded(column):
        file = dpcore.read_csv(written(tmp_path / "v.csv", column))
        return made.encoded(in_memory(admit_to(made.domain, file, "project"), made.domain))

    first = encoded(made.cells)
    for column, place in neighbours(made):
        second = encoded(column)
        assert [*first[:place], *first[place + 1 :]] == [*second[:place], *second[place + 1 :]]


# Ways in: each opens records and states a guarantee.


def labelled(kind, **options):
    return Domain(columns={"v": KINDS[kind].rule}, target="y", labels=Range(0, 1), **options)


def count_plan(kind="int", **options):
    return price_learner(
        Count(),
        domain=labelled(kind, limit=10 * SIZE),
        adjacency=ADD_REMOVE,
        mechanism=DiscreteGaussian(),
        on_invalid="project",
        delta=1e-6,
        **options,
    )


def by_plan(kind, table, ledger):
    return count_plan(kind).run(table).guarantee


def by_oracle(kind, table, ledger):
    learner = dpcore.Registry.default().component(LEARNER, "kernel_ridge.ridge")(regularization=0.1)
    plan = price_learner(
        learner,
        domain=labelled(kind, exact=SIZE),
        mechanism=GaussianProcess(),
        on_invalid="project",
        delta=1e-6,
    )
    return plan.open(table).guarantee


def by_session(kind, table, ledger):
    domain = labelled(kind, limit=10 * SIZE)
    session = dpcore.Session(ledger, domain, table, on_invalid="project")
    session.count(epsilon=0.5)
    session.count(epsilon=0.5)
    return session.releases[-1].guarantee


def by_run(kind, table, ledger):
    return dpcore.run("door.yaml", table=table, ledger=ledger).guarantee


def by_opendp(kind, table, ledger):
    pytest.importorskip("opendp.prelude").enable_features("contrib", "honest-but-curious")
    from dpcore_bridges.opendp import measurement

    return measurement(count_plan(kind), ledger=ledger)(table).guarantee


def by_estimator(kind, table, ledger):
    pytest.importorskip("sklearn")
    from dpcore.sklearn import PrivateRegressor

    options = {"target": (0, 1), "adjacency": REPLACE_ONE, "on_invalid": "project"}
    regressor = PrivateRegressor(columns={"v": KINDS[kind].rule}, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return regressor.fit(table.select(["v"]), table["y"]).guarantee_


def by_serving_estimator(kind, table, ledger):
    pytest.importorskip("sklearn")
    from dpcore.sklearn import KernelRidge

    options = {"target": (0, 1), "on_invalid": "project"}
    estimator = KernelRidge(columns={"v": KINDS[kind].rule}, **options)
    return estimator.fit(table.select(["v"]), table["y"]).guarantee_


BOUNDARIES = {
    "Plan.run": by_plan,
    "Plan.open": by_oracle,
    "Session": by_session,
    "run": by_run,
    "OpenDP": by_opendp,
    "estimator": by_estimator,
    "serving estimator": by_serving_estimator,
}
SPEC = """\
dpcore: 1
data:
  source: nowhere.csv
  domain: {records: private, columns: {v: [0, 100000]}}
adjacency: add_remove
on_invalid: project
budget: {epsilon: 1, delta: 1e-6}
release: {learner: statistics.count, mechanism: discrete_gaussian}
"""


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("door.yaml").write_text(SPEC)
    return dpcore.Ledger.create(tmp_path / "l", epsilon=9.0, delta=1e-3, adjacency=ADD_REMOVE)


@pytest.mark.parametrize("release_through", BOUNDARIES)
def test_every_door_refuses_texts_unspent_and_states_the_premise(release_through, ledger):
    pyarrow = pytest.importorskip("pyarrow")
    y = np.linspace(0, 1, SIZE)
    texts = pyarrow.table({"v": KINDS["int"].cells, "y": y})
    with pytest.raises(Exception, match="column 'v' declares numbers and arrives as string"):
        BOUNDARIES[release_through]("int", texts, ledger)
    assert ledger.spent().charges == 0
    numbers = pyarrow.table({"v": np.arange(SIZE), "y": y})
    assert (
        BOUNDARIES[release_through]("int", numbers, ledger).provenance.boundary_premises.count(
            HANDED_OVER
        )
        == 1
    )


@pytest.mark.parametrize("release_through", ["Plan.run", "Plan.open", "Session", "run", "OpenDP"])
def test_a_strict_reader_needs_no_premise_at_any_door(release_through, ledger):
    file = dpcore.read_csv(written(Path("v.csv"), KINDS["float"].cells))
    assert (
        HANDED_OVER
        not in BOUNDARIES[release_through]("float", file, ledger).provenance.boundary_premises
    )


def test_an_estimator_refuses_a_file_and_says_where_it_may_go(ledger):
    pytest.importorskip("sklearn")
    from dpcore.sklearn import PrivateRegressor

    file = dpcore.read_csv(written(Path("v.csv"), KINDS["int"].cells))
    with pytest.raises(ParameterError, match=r"Session\.fit or Plan\.run"):
        PrivateRegressor(columns={"v": (0, 9)}, target=(0, 1)).fit(file, "y")


# What reviewers did, with pandas and default settings.


def test_a_separator_of_thousands_no_longer_empties_a_mean(tmp_path, ledger):
    pandas = pytest.importorskip("pandas")
    kind = KINDS["int"]
    pair = [
        pandas.read_csv(written(tmp_path / "v.csv", [*kind.cells[:-1], cell]), thousands=",")
        for cell in ("45,500", "n/k")
    ]
    by_plan("int", pair[0], ledger)
    for release_through in (by_plan, by_session):
        with pytest.raises(SourceError, match=r"arrives as (str|object)"):
            release_through("int", pair[1], ledger)
    assert ledger.spent().charges == 0


def test_identifiers_of_17_digits_beside_an_empty_cell_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    kind = KINDS["17-digit id"]
    path = written(tmp_path / "v.csv", [*kind.cells[:-1], ""])
    frames = [pandas.read_csv(path), pandas.read_csv(path, dtype_backend="numpy_nullable")]
    with pytest.raises(SourceError, match=r"identifiers .* arrives as float64"):
        admit_to(kind.domain, frames[0], "project")
    assert kind.encoded(admit_to(kind.domain, frames[1], "project"))[:-1] == kind.cells[:-1]


def test_dates_that_two_formats_share_are_refused_where_the_type_shows_it(tmp_path, ledger):
    """Read as texts they are refused; as dates, the premise says that no one looked."""
    pandas = pytest.importorskip("pandas")
    column = KINDS["day-first date"].cells
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixed, month_first, day_first = (
            pandas.read_csv(written(tmp_path / f"{place}.csv", cells), parse_dates=["v"])
            for place, cells in enumerate(
                ([*column[:-1], "25/03/2020"], column, ["25/03/2020", *column[1:]])
            )
        )
    with pytest.raises(SourceError, match=r"declares dates and arrives as (str|object)"):
        by_plan("date", mixed, ledger)
    assert (month_first["v"] != day_first["v"])[1:].any()  # both are columns of dates
    for frame in (month_first, day_first):
        assert HANDED_OVER in by_plan("date", frame, ledger).provenance.boundary_premises


def test_a_regressor_refuses_objects_in_a_frame_and_in_an_array():
    pytest.importorskip("sklearn")
    from dpcore.sklearn import PrivateRegressor

    rows, labels = np.zeros((SIZE, 1)), np.zeros(SIZE)
    for options in ({"columns": (0, 1)}, {"columns": {"v": (0, 1)}}):
        for on_invalid in ("refuse", "project"):
            regressor = PrivateRegressor(target=(0, 1), on_invalid=on_invalid, **options)
            for pair in ((rows.astype(object), labels), (rows, labels.astype(object))):
                with pytest.raises(SourceError, match="arrives as object"):
                    regressor.fit(*pair)
        # A list has no type: a cell is its record's own, and is refused or mapped in by itself.
        with pytest.raises(SourceError, match="a list with other cells"):
            PrivateRegressor(target=(0, 1), **options).fit(rows, [*labels[:-1].tolist(), "0"])
