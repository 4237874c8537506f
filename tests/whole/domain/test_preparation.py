"""Columns that are prepared: each record's by itself, as a definition says, through every entry
point.

The definitions below are written from the page of specs, for one record and in plain Python.
"""

import datetime as dt
import math
import random

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import PublicRandomness, SecretRandomness, Session
from dpcore.domain.bins import Binned
from dpcore.domain.columns import Dates, Range
from dpcore.domain.derived import DIFFERENCE, MISSING, Derived
from dpcore.domain.domain import Domain
from dpcore.encoding.columns import centre_labels, read_codes
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError, SourceError, SpecError
from dpcore.private.engines.local import LocalEngine
from dpcore.private.opening import open_source, open_table
from dpcore.sources.csv_file import CsvSource
from dpcore.sources.opening import reading
from dpcore.specs.grammar import Csv
from dpcore.specs.spec import spec_of_text

SPEC = """\
dpcore: 1
data:
  source: people.csv
  domain:
    records: %s
    columns:
      sex: {categories: [f, m], map: {F: f, M: m, female: f}}
      smoker: [false, true]
      month: {dates: [2024-01-15, 2024-12-31], bins: month, of: came}
      week: {dates: [2024-01-01, 2024-12-31], bins: week, of: came}
      age: {range: [0, 110], bins: [0, 18, 65, 111], missing: true}
      stay: {range: [0, 365], days_between: [came, gone]}
      saved: {range: [-50, 50], difference: [weight, size]}
      bmi: {range: [10, 60], ratio: [weight, size], missing: true}
      day: {weekday_of: came}
      season: {month_of: gone}
      gap: {missing_in: weight}
      year: {range: [2020, 2030], year_of: came}
adjacency: %s
on_invalid: project
budget: {epsilon: 1, delta: 1e-6}
releases:
  - name: months
    learner: {name: statistics.table, marginals: {months: [month]}}
    mechanism: gaussian
  - name: ages
    learner: {name: statistics.table, marginals: {ages: [sex, age]}}
    mechanism: gaussian
  - name: stays
    learner: {name: statistics.sum, column: stay}
    mechanism: gaussian
"""
CELLS = {
    "sex": ["F", "f", "m", "M", "female", " m ", "x", "", "male"],
    "smoker": ["true", "False", "TRUE", "1", "0", "yes", ""],
    "came": ["2024-02-29", "2024-12-31T23:59", "2024-01-14", "2025-01-01", "2024-12-30", "n/k", ""],
    "gone": ["2024-03-01", "2024-01-31 12:00", "0001-01-01", "9999-12-31", "", "31.01.2024"],
    "age": ["0", "17.9", "18", "65", "110", "110.5", "-1", "", "old", "inf"],
    "weight": ["70", "0", "-5.5", "1e308", "", " ", "kg", "inf", ".5"],
    "size": ["2", "0", "-0", "1e-308", "", "3.5", "inf", "m"],
}
NAMES = tuple(CELLS)


def spec_at(relation, records):
    return spec_of_text(SPEC % (records, relation), "spec.yaml")


def a_record(rng):
    return tuple(rng.choice(CELLS[name]) for name in NAMES)


def columns_of(records):
    return {name: [record[i] for record in records] for i, name in enumerate(NAMES)}


def write(path, records):
    lines = [",".join(NAMES), *(",".join(record) for record in records)]
    path.write_text("\n".join(lines) + "\n")


def moment(cell):
    try:
        return dt.datetime.fromisoformat(cell.strip()) if cell[4:5] == "-" else None
    except ValueError:
        return None


def number(cell):
    try:
        return float(cell.strip())
    except ValueError:
        return math.nan


def position(value, low, high):
    """A number of a range in [-1, 1]; the middle where it is none."""
    return 0.0 if math.isnan(value) else 2 * (min(max(value, low), high) - low) / (high - low) - 1


def one_of(places, place):
    """An indicator: of two places a sign, of more a one among zeros; zeros where there is none."""
    if places == 2:
        return [0.0 if place is None else 2.0 * place - 1]
    return [float(i == place) for i in range(places)]


def defined_row(record):
    """What one record's row is, by the definitions."""
    sex, smoker, came, gone, age, weight, size = record
    came, gone, age = moment(came), moment(gone), number(age)
    kilos, metres = number(weight), number(size)
    spelled = {"f": 0, "F": 0, "female": 0, "m": 1, "M": 1}.get(sex.strip())
    truth = {"true": 1, "1": 1, "false": 0, "0": 0}.get(smoker.lower())
    epoch = dt.datetime(1970, 1, 1)
    days = {at: (at - epoch) / dt.timedelta(days=1) for at in (came, gone) if at}
    inside = came is not None and dt.datetime(2024, 1, 15) <= came < dt.datetime(2025, 1, 1)
    # The last day holds all its moments.
    in_year = came is not None and dt.datetime(2024, 1, 1) <= came < dt.datetime(2025, 1, 1)
    weeks = [dt.date(2024, 1, 1) + dt.timedelta(7 * i) for i in range(53)]
    week = sum(came.date() >= start for start in weeks) - 1 if in_year else None
    bins = [0 <= age < 18, 18 <= age < 65, 65 <= age <= 110, math.isnan(age)]
    stay = days[gone] - days[came] if came and gone else math.nan
    saved = kilos - metres if math.isfinite(kilos) or math.isfinite(metres) else math.nan
    quotient = math.nan
    if metres != 0 and not (math.isinf(kilos) and math.isinf(metres)):
        with np.errstate(over="ignore"):
            quotient = float(np.float64(kilos) / np.float64(metres))
    no_bmi = math.isnan(quotient)
    return [
        *one_of(2, spelled),
        *one_of(2, truth),
        *one_of(12, came.month - 1 if inside else None),
        *one_of(53, week),
        *one_of(4, bins.index(True) if any(bins) else None),
        position(stay, 0, 365),
        position(saved, -50, 50),
        *([0.0, 1.0] if no_bmi else [position(quotient, 10, 60), 0.0]),
        *one_of(7, came.weekday() if came else None),
        *one_of(12, gone.month - 1 if gone else None),
        *one_of(2, int(not weight.strip())),
        position(came.year if came else math.nan, 2020, 2030),
    ]


def opened_rows(request, source):
    """The encoded records that a run reads, from a source by an engine or from a table."""
    secret = SecretRandomness.rehearsal(3)
    if isinstance(source, dict):
        records = open_table(request, source, secret).train
        return np.asarray(records.features)
    with LocalEngine() as engine:
        train = open_source(request, source, secret, engine).train
        (blocks,) = engine._by_split.values()
        return np.vstack([blocks.records(i).features for i in range(len(blocks.blocks))])[
            : len(train)
        ]


def boundaries(path, records, request):
    """The same records through every reader: a table, both readers of CSV, and Parquet."""
    from dpcore.sources.csv.arrow_reader import by_arrow
    from dpcore.sources.csv.frames import by_lines
    from dpcore.sources.opening import location

    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    write(path, records)
    facts = reading(request.domain, path.parent, Csv(), total=True)
    yield columns_of(records)
    for reader in (by_lines, by_arrow):
        yield CsvSource(path=path, reading=facts, reader=reader)
    parquet.write_table(pyarrow.table(columns_of(records)), path.with_suffix(".parquet"))
    yield location(path.with_suffix(".parquet").name).open(facts)


def sorted_rows(rows):
    return sorted(map(tuple, np.asarray(rows).tolist()))


def test_every_record_is_prepared_as_the_definitions_say_through_every_door(tmp_path):
    rng = random.Random(1)
    records = [a_record(rng) for _ in range(300)]
    request = spec_at("add_remove", "private").request
    expected = np.array([defined_row(record) for record in records])
    projected = project_table(request.domain, columns_of(records)).features
    np.testing.assert_allclose(projected, expected, rtol=0, atol=1e-15)
    for source in boundaries(tmp_path / "people.csv", records, request):
        assert sorted_rows(opened_rows(request, source)) == sorted_rows(projected)


@pytest.mark.parametrize(
    ("relation", "records", "moved"), [("add_remove", "private", 1), ("replace_one", 9, 2)]
)
def test_neighbouring_messy_files_differ_in_one_row_and_within_every_claim(
    tmp_path, relation, records, moved
):
    rng = random.Random(7)
    spec = spec_at(relation, records)
    plan = spec.price()
    for pair in range(20):
        first = [a_record(rng) for _ in range(9)]
        second = [*first[:4], *first[5:]] if relation == "add_remove" else list(first)
        if relation == "replace_one":
            second[4] = a_record(rng)
        for number_of_boundary, (one, other) in enumerate(
            zip(
                boundaries(tmp_path / "first.csv", first, spec.request),
                boundaries(tmp_path / "second.csv", second, spec.request),
                strict=True,
            )
        ):
            rows = [sorted_rows(opened_rows(spec.request, source)) for source in (one, other)]
            left = [row for row in rows[0] if rows[0].count(row) > rows[1].count(row)]
            right = [row for row in rows[1] if rows[1].count(row) > rows[0].count(row)]
            assert len({*left}) + len({*right}) <= moved, (pair, number_of_boundary)
        # By brute force: each released statistic of the two, and how far it is claimed to move.
        for scheduled in plan.schedule.releases:
            public = scheduled.public(PublicRandomness(1))
            for planned_query in scheduled.queries.values():
                values = [
                    np.asarray(
                        scheduled.learner.statistic(
                            planned_query.query,
                            project_table(spec.request.domain, columns_of(file)),
                            public,
                            SecretRandomness.rehearsal(0).learner(0, planned_query.query.name, 1),
                        )
                    ).ravel()
                    for file in (first, second)
                ]
                distance = np.linalg.norm(values[0].astype(float) - values[1].astype(float))
                assert distance <= planned_query.sensitivity.value * (1 + 1e-12)


def test_a_typed_table_is_prepared_too():
    pyarrow = pytest.importorskip("pyarrow")
    domain = spec_at("add_remove", "private").request.domain
    table = {
        "sex": ["F", "m"],
        "smoker": [True, False],
        "came": [dt.date(2024, 2, 29), dt.date(2024, 12, 30)],
        "gone": [dt.date(2024, 3, 1), None],
        "age": [17.5, None],
        "weight": [70.0, None],
        "size": [2.0, 0.0],
    }
    frame, budget = pyarrow.table(table), dpcore.PrivacyBudget(epsilon=1)
    with Session(budget, domain, frame, on_invalid="project") as session:
        assert session.left
    texts = [
        ("F", "true", "2024-02-29", "2024-03-01", "17.5", "70", "2"),
        ("m", "false", "2024-12-30", "", "", "", "0"),
    ]
    assert project_table(domain, frame).features.tolist() == [
        defined_row(record) for record in texts
    ]
    with pytest.raises(SourceError, match="declares dates"):
        Session(budget, domain, pyarrow.table(table | {"came": ["2024-02-29", "x"]}))


def test_a_hold_out_and_predictions_take_prepared_columns():
    text = """\
dpcore: 1
data:
  source: x.csv
  target: cost
  domain:
    records: 200
    columns:
      sex: {categories: [f, m], map: {F: f}}
      month: {dates: [2024-01-01, 2024-12-31], bins: month, of: came}
      stay: {range: [0, 400], days_between: [came, gone]}
    target: [0, 100]
adjacency: replace_one
budget: {epsilon: 5, delta: 1e-6}
release: {learner: tables.shape_functions, mechanism: gaussian}
evaluate: {holdout: 0.5, metrics: [mse]}
"""
    rng = random.Random(2)
    came = [dt.date(2024, rng.randrange(1, 13), rng.randrange(1, 29)) for _ in range(200)]
    stays = [rng.randrange(30) for _ in range(200)]
    table = {
        "sex": [rng.choice("Ffm") for _ in range(200)],
        "came": came,
        "gone": [day + dt.timedelta(stay) for day, stay in zip(came, stays, strict=True)],
        "cost": [3.0 * stay for stay in stays],
    }
    plan = spec_of_text(text, "x.yaml").price()
    model = plan.run(table).model
    raw = model.predict({name: table[name] for name in ("sex", "came", "gone")})
    named = [f"{day:%Y-%m}" for day in came]
    sexes = [sex.lower() for sex in table["sex"]]
    assert raw.tolist() == model.predict({"sex": sexes, "month": named, "stay": stays}).tolist()
    paid = plan.guarantee.paragraph()
    assert "which is days from 'came' to 'gone'" in " ".join(paid.split())


@pytest.mark.parametrize("people", ["", "people: {column: who, records: 2}\n    "])
def test_the_hold_out_of_a_file_holds_prepared_columns(tmp_path, people):
    text = f"""\
dpcore: 1
data:
  source: x.csv
  target: cost
  domain:
    records: private
    {people}columns:
      stay: {{range: [0, 400], days_between: [came, gone]}}
      weekday: {{weekday_of: came}}
    target: [0, 400]
adjacency: add_remove
budget: {{epsilon: 1}}
release: {{learner: statistics.count}}
evaluate: {{holdout: 0.5, metrics: [mse]}}
"""
    request = spec_of_text(text, "x.yaml").request
    days = [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(60)]
    rows = [f"P{i // 2},{day},{day + dt.timedelta(i)},{i}" for i, day in enumerate(days)]
    (tmp_path / "x.csv").write_text("\n".join(["who,came,gone,cost", *rows]) + "\n")
    facts = reading(request.domain, tmp_path, Csv())
    with LocalEngine() as engine:
        source = CsvSource(path=tmp_path / "x.csv", reading=facts)
        hold_out = open_source(request, source, SecretRandomness.rehearsal(1), engine).holdout
    places = [int(cost) for cost in hold_out["cost"]]
    assert 0 < len(places) < 60
    assert list(hold_out["stay"]) == places
    assert list(hold_out["weekday"]) == [f"{days[place]:%A}" for place in places]


def test_a_last_edge_one_past_the_range_is_right_and_one_below_it_is_refused():
    ages = Range(0, 110)
    binned = Binned.between(ages, [0, 18, 111])
    assert binned.values == ("[0, 18)", "[18, 111)")
    assert read_codes(binned, [0, 17.9, 18, 110, 110.5, -1, None]).tolist() == [
        0,
        0,
        1,
        1,
        -1,
        -1,
        -1,
    ]
    assert Binned.between(ages, [0, 18, 110]).values == ("[0, 18)", "[18, 110]")
    assert read_codes(Binned.between(ages, [0, 18, 110]), [110]).tolist() == [1]
    for edges in ([0, 18, 109], [1, 18, 111], [0, 18, 18, 111], [0, 111], ["x", 111], 5, "month"):
        with pytest.raises(ParameterError, match="bins"):
            Binned.between(ages, edges)


def test_a_column_of_an_unequal_length_is_never_stretched():
    domain = Domain(
        columns={"stay": Range(0, 9)}, derived={"stay": Derived(DIFFERENCE, ("a", "b"))}
    )
    for a, b in [([1, 2, 3], [1]), ([1], [1, 2, 3]), ([1, 2], [1, 2, 3])]:
        with pytest.raises(SourceError, match="equally long"):
            project_table(domain, {"a": a, "b": b})


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("{categories: [f, m], map: {F: x}}", "mapped to values that are listed"),
        ("{categories: [f, m], map: {f: m}}", "other cells than the values"),
        ("{dates: [2024-01-01, 2024-12-31], bins: day}", "bins"),
        ("{range: [0, 9], bins: [0, 5]}", "cover the range"),
        ("{range: [0, 9], bins: month}", "bins"),
        ("{range: [0, 9], of: a, year_of: b}", "not two"),
        ("{range: [0, 9], difference: [a]}", "a list of 2"),
        ("{weekday_of: a, range: [0, 1]}", "unknown key"),
        ("{range: [0, 9], of: d}", "one kind of cells"),
        ("{weekday_of: x}", "one kind of cells"),
    ],
)
def test_an_impossible_preparation_is_refused_with_its_place(column, message):
    text = f"""\
dpcore: 1
data:
  source: x.csv
  domain:
    records: private
    columns:
      d: {{dates: [2024-01-01, 2024-12-31]}}
      x: {column}
adjacency: add_remove
budget: {{epsilon: 1}}
release: {{learner: {{name: statistics.count}}, mechanism: laplace}}
"""
    with (
        pytest.raises(SpecError, match=message)
        if "kind" not in message
        else pytest.raises(ParameterError, match=message)
    ):
        spec_of_text(text, "x.yaml")


def test_a_target_may_be_spelled_and_not_derived():
    text = """\
dpcore: 1
data:
  source: x.csv
  target: ill
  domain: {records: 10, columns: {a: [0, 1]}, target: %s}
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-6}
release: {learner: tables.shape_functions, mechanism: gaussian}
"""
    spelled = "{categories: [no, yes], map: {Y: yes, true: yes}}"
    domain = spec_of_text(text % spelled, "x.yaml").request.domain
    assert centre_labels(domain.labels, ["Y", "yes", True, "no", "n"]).tolist() == [1, 1, 1, -1, 0]
    assert centre_labels(domain.labels, [True, False, None]).tolist() == [1, 0, 0]
    for derived in ("{missing_in: a}", "{range: [0, 9], bins: [0, 5, 9]}"):
        with pytest.raises(SpecError, match="no bins"):
            spec_of_text(text % derived, "x.yaml")


def test_missing_is_about_the_cell_and_not_about_what_it_counts_as():
    domain = Domain(
        columns={"bmi": Range(10, 60), "gap": dpcore.Categories(("false", "true"))},
        derived={"gap": Derived(MISSING, ("bmi",))},
    )
    request = spec_at("add_remove", "private").request
    intake = attrs.evolve(request.records, on_invalid="project")
    request = attrs.evolve(request, domain=domain, records=intake)
    rows = open_table(request, {"bmi": ["20", "n/k", ""]}, SecretRandomness.rehearsal(0)).train
    assert sorted(rows.features[:, 1].tolist()) == [-1.0, -1.0, 1.0]


def test_weeks_and_years_have_the_names_of_the_calendar():
    dates = Dates.between(dt.date(2020, 12, 28), dt.date(2021, 1, 10))
    assert Binned.by_week(dates).values == ("2020-W53", "2021-W01")
    assert Binned.by_year(dates).values == ("2020", "2021")
    with pytest.raises(ParameterError, match="at most"):
        Binned.by_week(Dates.between(dt.date(1, 1, 1), dt.date(9999, 12, 31)))
