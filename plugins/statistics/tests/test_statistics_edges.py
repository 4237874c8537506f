"""Every statistic that cuts a range counts a number on an edge in the cell that begins there."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from dpcore import ADD_REMOVE, Categories, Domain, Public, PublicRandomness, Range, Records
from dpcore.domain import Dates
from dpcore.domain.classes import Classes
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.exact import Exact
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import CELLS_AT_EDGES, sum_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_statistics.columns import Cells, conditions, selected
from dpcore_statistics.count import Count, Share
from dpcore_statistics.distinct import Distinct
from dpcore_statistics.group_rates import GroupRates
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.marginals.learner import Marginals
from dpcore_statistics.mean import Mean
from dpcore_statistics.running import Running
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table
from dpcore_statistics.workload import Workload


def nearest(low, high, count):
    """Edges by 60 digits and more, which `float` rounds to the nearest double."""
    with localcontext() as context:
        context.prec = 400
        first, last = Decimal(str(low)), Decimal(str(high))
        return [float(first + i * (last - first) / count) for i in range(count + 1)]


def adjacent(edges):
    """Every edge and the doubles next to it, inside the range; and how many are in each cell."""
    numbers, counts = [], [0] * (len(edges) - 1)
    for place, edge in enumerate(edges):
        for number, shift in (
            (math.nextafter(edge, -math.inf), -1),
            (edge, 0),
            (math.nextafter(edge, math.inf), 0),
        ):
            if edges[0] <= number <= edges[-1]:
                numbers.append(number)
                counts[min(place + shift, len(counts) - 1)] += 1
    return numbers, counts


def facts(low, high, **column):
    return Domain(
        columns={"a": Range(low, high, **column), "g": Categories(("x", "y"))},
        target="y",
        labels=Range(low, high),
    )


def public(domain):
    return Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)


def projected(domain, numbers):
    table = {name: numbers for name in domain.rules if name not in ("g",)}
    return project_table(domain, {**table, "g": ["x"] * len(numbers)})


def summed(learner, domain, numbers):
    """The exact sum of the learner's last query, as integers of its unit."""
    known = public(domain)
    *_, query = learner.queries(known)
    return learner.total_of(query, projected(domain, numbers), known)


RULES = [
    (0, 10, 10),
    (0, 100, 10),
    (0, 5, 5),
    (-5, 5, 10),
    (0, 110, 11),
    (0.1, 0.7, 6),
    (0, 1000, 3),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_counts_of_cells_are_those_of_the_edges(rule):
    low, high, bins = rule
    domain = facts(low, high)
    numbers, expected = adjacent(nearest(*rule))
    learners = {
        "histogram": Histogram(column="a", bins=bins, strategy="cells"),
        "target": Histogram(column="y", bins=bins),
        "declared": Histogram(column="a", edges=tuple(nearest(*rule))),
        "count": Count(by=("a",), bins={"a": bins}),
        "groups": GroupBy(by=("a",), bins={"a": bins}),
    }
    for name, learner in learners.items():
        assert summed(learner, domain, numbers).integers() == expected, name
    weights = summed(Table(marginals={"t": ("a",)}, bins={"a": bins}), domain, numbers).floats()
    np.testing.assert_allclose(weights, expected)
    workload = Workload(column="a", bins=bins, ask_for="cells")
    measured = workload.strategy(public(domain)).measured @ np.array(expected)
    np.testing.assert_allclose(summed(workload, domain, numbers).floats(), measured)
    running = Running(column="a", edges=tuple(nearest(*rule)), bands=1)
    unit = running.weights(public(domain))[0]  # what a record adds to its own period
    assert summed(running, domain, numbers).integers() == [unit * count for count in expected]
    means, known = Mean(column="y", by=("a",), bins={"a": bins}), public(domain)
    (query,) = means.queries(known)
    rows = means.contributions(query, projected(domain, numbers), known)
    in_group = np.abs(rows).reshape(len(numbers), bins, -1).max(axis=2) > 0
    assert in_group.sum(axis=0).tolist() == expected


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_distinct_values_are_cells_that_hold_a_number(rule):
    low, high, bins = rule
    domain, edges = facts(low, high), nearest(*rule)
    learner = Distinct(of=("a",), bins={"a": bins})
    (query,) = learner.queries(public(domain))
    # Only numbers of every second cell: its first double, and its last one.
    numbers = [
        x for i in range(0, bins, 2) for x in (edges[i], math.nextafter(edges[i + 1], -math.inf))
    ]
    found = learner.statistic(query, projected(domain, numbers), public(domain), None)
    assert found.tolist() == [len(range(0, bins, 2))]


def misplaced(rules):
    """How many numbers next to edges lie in another cell than edges say; and how many there are."""
    wrong = total = 0
    for low, high, bins in rules:
        edges, domain = nearest(low, high, bins), facts(low, high)
        numbers = np.array(adjacent(edges)[0])
        expected = np.minimum([sum(e <= x for e in edges) - 1 for x in numbers.tolist()], bins - 1)
        records = projected(domain, numbers)
        for name in ("a", "y"):
            found = Cells.of(domain, name, None, bins).index(records)
            wrong += int((found != expected).sum())
            total += len(numbers)
    return wrong, total


def random_rules(seed, count):
    """Ranges of short decimals of every size, and numbers of cells."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        scale = float(10.0 ** rng.integers(-6, 7))
        ends = sorted({float(f"{x * scale:.{rng.integers(1, 8)}g}") for x in rng.uniform(-1, 1, 2)})
        if len(ends) == 2 and ends[1] - ends[0] > 1e-9 * max(map(abs, ends)):
            yield (*ends, int(rng.integers(1, 40)))


def test_no_number_is_misplaced_in_random_ranges():
    wrong, total = misplaced(random_rules(0, 60))
    assert wrong == 0
    assert total > 3_000


@pytest.mark.slow
def test_no_number_is_misplaced_in_many_random_ranges():
    wrong, total = misplaced(random_rules(1, 10_000))
    assert wrong == 0
    assert total > 100_000


@pytest.mark.slow
def test_no_whole_number_is_misplaced_in_small_ranges():
    rules = [
        (low, high, bins)
        for low in range(-6, 7)
        for high in range(low + 1, 21)
        for bins in range(1, 22)
    ]
    assert misplaced(rules)[0] == 0
    tenths = [(low / 10, high / 10, bins) for low, high, bins in rules if bins < 12]
    assert misplaced(tenths)[0] == 0


@pytest.mark.parametrize("bins", [7, 12, 365])
def test_days_are_in_the_cell_that_begins_with_them(bins):
    first, last = np.datetime64("2020-01-01"), np.datetime64("2020-12-31")
    ends = [int((day - np.datetime64("1970-01-01")).astype(int)) for day in (first, last)]
    domain = Domain(columns={"day": Dates(float(ends[0]), float(ends[1]))})
    days = np.arange(first, last + 1)
    edges = nearest(float(ends[0]), float(ends[1]), bins)
    numbers = np.arange(ends[0], ends[1] + 1)
    expected = np.minimum([sum(e <= x for e in edges) - 1 for x in numbers.tolist()], bins - 1)
    for column in (days, [str(day) for day in days]):
        records = project_table(domain, {"day": column})
        assert Cells.of(domain, "day", None, bins).index(records).tolist() == expected.tolist()


def test_a_condition_begins_at_its_number_and_ends_below_it():
    domain = facts(0, 1000)
    numbers = adjacent([0, 3, 7, 1000])[0]
    for where, expected in (
        ({"from": 3}, [x >= 3 for x in numbers]),
        ({"below": 7}, [x < 7 for x in numbers]),
        ({"from": 3, "below": 7}, [3 <= x < 7 for x in numbers]),
        ({"below": 1000}, [x < 1000 for x in numbers]),
        ({"from": 1000}, [x == 1000 for x in numbers]),
    ):
        for name in ("a", "y"):
            records = projected(domain, numbers)
            assert selected(domain, {name: where}, records).tolist() == expected
    ((cut, cells),) = conditions(domain, {"a": {"from": 3, "below": 7}})
    assert (cut.edges, cells) == ((3.0, 7.0, math.inf), (0,))
    with pytest.raises(ParameterError, match="must be lower"):
        selected(domain, {"a": {"from": 3, "below": 3}}, projected(domain, [3.0]))
    proportion = Share(meets={"a": {"from": 3}})
    (query,) = proportion.queries(public(domain))
    rows = proportion.contributions(query, projected(domain, numbers), public(domain))
    assert (rows[:, 0] > 0).tolist() == [x >= 3 for x in numbers]


def test_missing_numbers_are_in_no_cell():
    domain = facts(0, 10, missing=True)
    records = project_table(domain, {"a": [None, 0.0, 3.0, 10.0], "g": ["x"] * 4, "y": [1.0] * 4})
    assert Cells.of(domain, "a", None, 10).index(records).tolist() == [-1, 0, 3, 9]
    by_hand = Records(features=records.features, labels=records.labels)
    assert Cells.of(domain, "a", None, 10).index(by_hand).tolist() == [-1, 0, 3, 9]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_records_made_by_hand_count_as_what_encodes_as_they_do(rule):
    low, high, bins = rule
    domain, edges = facts(low, high), nearest(*rule)
    records = projected(domain, edges)
    by_hand = Records(features=records.features, labels=records.labels)
    for name in ("a", "y"):
        expected = [*range(bins), bins - 1]
        assert Cells.of(domain, name, None, bins).index(by_hand).tolist() == expected


def test_scores_on_an_edge_are_in_the_cell_that_begins_there():
    domain = Domain(
        columns={"predicted": Categories(("no", "yes")), "score": Range(0.0, 1.0)},
        target="y",
        labels=Classes(("no", "yes")),
    )
    learner = GroupRates(by=(), calibration=10)
    (query,) = learner.queries(public(domain))
    numbers, expected = adjacent(nearest(0, 1, 10))
    table = {"predicted": ["no"] * len(numbers), "score": numbers, "y": ["no"] * len(numbers)}
    found = learner.total_of(query, project_table(domain, table), public(domain)).floats()
    assert found[0, 0].tolist() == expected


def test_labels_of_cells_say_the_edges():
    assert Cells.of(facts(0, 0.3), "a", None, 3).labels == ("[0, 0.1)", "[0.1, 0.2)", "[0.2, 0.3]")


def test_marginals_count_in_the_same_cells():
    domain = facts(0, 10)
    numbers, expected = adjacent(nearest(0, 10, 10))
    learner = Marginals(columns=("a",), bins={"a": 10})
    known = public(domain)
    *_, query = learner.queries(known)
    (tally,) = learner.tallies(query, known)
    counts = [np.array([[count] for count in expected], dtype=object)]
    assert tally.cuts[0].edges == tuple(nearest(0, 10, 10))
    same = learner.from_tallies(query, counts, known)
    assert learner.total_of(query, projected(domain, numbers), known) == same


class ByPositions(Histogram):
    """Cuts what is encoded into equal parts, as a plugin may."""

    def partial(self, query, block, public):
        return Exact.of(self.rows(query, block, public).sum(axis=0), 0)

    def rows(self, query, block, public):
        places = np.searchsorted(np.linspace(-1, 1, 11), block.features[:, 0], side="right") - 1
        return np.eye(10)[np.clip(places, 0, 9)]


@pytest.mark.parametrize(
    ("learner", "outcome"),
    [
        (Histogram(column="a", bins=10), Outcome.PASSED),
        (ByPositions(column="a", bins=10), Outcome.FAILED),
        (Histogram(column="g"), Outcome.NOT_APPLICABLE),
        # What is reported with all its digits may lie next to a simple fraction.
        (Histogram(column="a", edges=(0.0, 0.1 + 0.2, 10.0)), Outcome.PASSED),
    ],
)
def test_a_law_of_the_kit_finds_cells_that_begin_beside_their_edges(learner, outcome):
    case = Case(learner=learner, bound=StatisticBound(), domain=facts(0, 10), adjacency=ADD_REMOVE)
    verdicts = {verdict.law: verdict.outcome for verdict in sum_verdicts(case)}
    assert verdicts[CELLS_AT_EDGES] is outcome
