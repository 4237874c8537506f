"""What a session is asked: every sequence is a tuple, and nothing fails once it is paid."""

import warnings
from datetime import date

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import Categories, Domain, PrivacyBudget, Range, Registry, Release, Session
from dpcore.domain import Dates, Texts
from dpcore.errors import DpcoreError, SpecError
from dpcore.registry.kinds import LEARNER
from dpcore.transcript.replay_process import HERE
from dpcore_statistics.quantiles import Quantiles

SIZE = 30
FACTS = Domain(
    columns={
        "a": Range(0, 10), "b": Range(1, 20), "c": Categories(("x", "y", "z")),
        "k": Categories(("p", "q")), "t": Texts(5),
        "d": Dates.between(date(2020, 1, 1), date(2020, 3, 1)),
    }
)  # fmt: skip
TABLE = {
    "a": np.linspace(0, 10, SIZE), "b": np.linspace(1, 20, SIZE), "c": [*"xyz"] * 10,
    "k": [*"pq"] * 15, "t": ["u"] * SIZE,
    "d": np.array(["2020-01-05"] * SIZE, dtype="datetime64[D]"),
}  # fmt: skip

ASKED = {
    "bounded_mean": {"column": "a"},
    "count": {},
    "covariance": {"column": "a", "other": "b"},
    "distinct": {"of": ("c",)},
    "group_by": {"by": ("c",)},
    "histogram": {"column": "a", "edges": (0.0, 2.5, 10.0)},
    "marginals": {"columns": ("c", "k"), "triples": ()},
    "mean": {"column": "a", "by": ("k",), "edges": {}},
    "private_groups": {"column": "t", "mean_of": "a"},
    "private_keys": {"column": "t"},
    "quantiles": {"column": "a", "quantiles": (0.25, 0.75), "points": 41, "method": "prefixes"},
    "ratio": {"column": "a", "over": "b"},
    "running": {"column": "d", "every": "day"},
    "share": {"meets": {"c": ("x", "y")}},
    "sum": {"column": "a", "by": ("a",), "edges": {"a": (0.0, 5.0, 10.0)}},
    "table": {"marginals": {"m": ("c", "k")}},
    "top": {"column": "c", "k": 2},
    "variance": {"column": "a"},
    "workload": {"column": "a", "edges": (0.0, 2.5, 10.0), "matrix": ((1.0, 0.0), (1.0, 1.0))},
}
"""Every method that asks a question, with fields that it takes."""


def session():
    budget = PrivacyBudget(epsilon=1000, delta=1e-6)
    return Session(budget, FACTS, TABLE, replaying=HERE)


def forms_of(value):
    """The same sequences as lists, arrays and columns of frames."""
    if isinstance(value, dict):
        yield from ({key: next(forms_of(entry)) for key, entry in value.items()},)
    elif isinstance(value, tuple):
        yield [[*entry] if isinstance(entry, tuple) else entry for entry in value]
        yield np.array(value)
        if value and not isinstance(value[0], tuple):
            yield pytest.importorskip("pandas").Series(value)
            yield pytest.importorskip("polars").Series(value)
            yield pytest.importorskip("pyarrow").array(value)
    else:
        yield np.array(value)[()]


CASES = [(name, field) for name, fields in ASKED.items() for field in fields]


def test_every_question_of_a_session_is_asked_here():
    methods = {name for name, value in vars(Session).items() if "Ask `" in (value.__doc__ or "")}
    assert methods == {*ASKED}


@pytest.mark.parametrize(("name", "field"), CASES)
def test_a_sequence_of_any_kind_is_the_tuple_of_its_values(name, field):
    fields = ASKED[name]
    one = session()
    asked = one.learner(f"statistics.{name}", fields)
    made = Registry.default().component(LEARNER, f"statistics.{name}")
    for form in forms_of(fields[field]):
        assert one.learner(f"statistics.{name}", {**fields, field: form}) == asked
        if isinstance(form, list):  # a learner that was made with a list, or with an array
            assert Release(learner=made(**{**fields, field: form})).learner == asked


def test_a_list_of_quantiles_is_asked_as_a_tuple_is():
    one = session()
    for orders in ([0.25, 0.75], np.array([0.25, 0.75])):
        learner = Quantiles(column="a", quantiles=orders, method="prefixes")
        assert one.release(learner, epsilon=1).tables[""]["quantile"] == (0.25, 0.75)
        table = one.quantiles("a", orders, epsilon=1, points=41, method="prefixes")
        assert table["quantile"] == (0.25, 0.75)


def test_components_inside_a_component_are_made_of_tuples_too():
    @attrs.frozen
    class Inner:
        sizes: tuple[int, ...]
        weights: "np.ndarray"

    @attrs.frozen
    class Outer:
        inner: Inner
        candidates: tuple[Inner, ...]

    weights = np.ones(2)
    inner = Inner((1, 2), weights)
    listed = Inner([np.int64(1), 2], weights)
    made = dpcore.checks.tupled(Outer(listed, [listed, inner]))
    assert made.inner.sizes == made.candidates[0].sizes == (1, 2)
    assert made.inner.weights is weights  # declared to be an array
    assert made.candidates[1] is inner
    assert dpcore.checks.tupled(made) is made


@pytest.mark.parametrize("several", [{0.25, 0.75}, iter((0.25, 0.75)), (q for q in (0.25, 0.75))])
def test_what_has_no_lasting_order_is_refused_unspent(several):
    one = session()
    left = one.left
    with pytest.raises(SpecError, match="quantiles: needs values in a list, got a value of type"):
        one.quantiles("a", several, epsilon=1)
    with pytest.raises(DpcoreError):
        one.release(Quantiles(column="a", quantiles=several), epsilon=1)
    assert one.left == left


JUNK = (
    None, "zz", 3, -1, 0.5, float("nan"), 10**400, True, [["a"], ["b", "c"]], ["c", "k"],
    {"c": "x"}, {"a": [1, 2, 3]}, {"a": {1, 2}}, {"c", "k"}, [0.25, 0.75], np.array([0.25, 0.75]),
    np.array(0.5), np.int64(3), np.str_("c"), [1, "a"], [], object(), int, b"ab",
)  # fmt: skip


def junk_of(name):
    """Every field of a learner with everything that somebody might write there."""
    for field in attrs.fields(Registry.default().component(LEARNER, f"statistics.{name}")):
        yield from ((field.name, value) for value in JUNK if field.init)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_whatever_fails_from_its_arguments_alone_is_not_charged(name):
    one = session()
    for field, value in junk_of(name):
        left = one.left
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                getattr(one, name)(**{**ASKED[name], field: value}, epsilon=0.1)
            except Exception:
                assert one.left == left, (field, value)


@pytest.mark.parametrize("value", [None, "1", [1.0], np.array([1.0, 2.0]), {1.0}, float("nan"), -1])
def test_an_epsilon_that_is_no_number_is_refused_unspent(value):
    one = session()
    left = one.left
    for query in (one.count, lambda epsilon: one.ask([("statistics.count", {})], epsilon=epsilon)):
        with pytest.raises(DpcoreError, match="finite epsilon > 0"):
            query(epsilon=value)
    assert one.left == left
