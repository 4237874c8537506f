"""What every error keeps to: one bounded printable line, a path, a near name or none."""

import pickle

import pytest

from dpcore.errors import (
    DpcoreError,
    ParameterError,
    RequestError,
    SpecError,
    below,
    map_below,
    near,
    nearest,
    one_line,
    shown,
)
from dpcore.yaml.located import locate_errors, parse, place

HOSTILE = "a\nb\tc\x07\x1b[31m\u202e\u2028\ud800" + "x" * 10**6


@pytest.mark.parametrize(
    "error",
    [
        SpecError(HOSTILE, ("a", HOSTILE)),
        ParameterError("ridge", "a number", "clip", HOSTILE),
        DpcoreError(f"got {HOSTILE}", place="s.yaml:1:1"),
    ],
)
def test_a_message_is_one_bounded_line_without_control_characters(error):
    text = str(error)
    assert text.isprintable()
    assert len(text) < 1300
    text.encode()


def test_a_value_is_shortened_in_its_middle():
    assert shown("abc") == "'abc'"
    assert shown(list(range(10**5))).startswith("[0, 1, 2, ")
    assert shown(list(range(10**5))).endswith(" 99999]")
    assert len(shown("y" * 10**5)) <= 80
    assert one_line("a  b\n c") == "a b c"


def test_callers_put_their_keys_in_front_and_a_path_from_the_top_stays():
    with pytest.raises(SpecError) as caught, below("releases", 1), below("mechanism"):
        raise SpecError("wrong", "choice")
    assert caught.value.where == "releases.1.mechanism.choice"
    assert str(caught.value) == "releases.1.mechanism.choice: wrong"
    with pytest.raises(SpecError) as caught, below("releases", 1):
        raise SpecError("wrong", "budget", top=True)
    assert caught.value.where == "budget"


def test_mapped_values_keep_their_keys_and_an_error_says_which_value_it_is_about():
    assert map_below(abs, [("a", -1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(SpecError) as caught:
        map_below(double_word, enumerate(["good", "bad"]), "releases")
    assert caught.value.path == "releases.1"


def double_word(word):
    if word == "bad":
        raise SpecError("no such word")
    return word + word


SPEC = """\
budget: {epsilon: 1}
releases:
  - {learner: a}
  - learner:
      name: b
"""


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (SpecError("", "budget"), "1:9"),
        (SpecError("", "budget", key="epsilon"), "1:10"),
        (SpecError("", "budget.epsilon"), "1:19"),
        (ParameterError("o", "n", "epsilon", 1, "budget"), "1:19"),
        (SpecError("", "budget.delta"), "1:9"),  # the nearest key there is
        (SpecError("", "budget", key="delta"), "1:9"),
        (SpecError("", "releases", key="1"), "4:5"),
        (SpecError("", "releases.1.learner.name"), "5:13"),
        (SpecError("", "releases.1.learner.bound.of"), "5:7"),
        (SpecError("", "releases.7.learner"), "3:3"),
        (SpecError(""), "1:1"),
    ],
)
def test_a_path_is_found_in_the_file_as_far_as_it_leads(error, where):
    place(error, parse(SPEC, "s.yaml"))
    assert error.place == f"s.yaml:{where}"


def test_a_place_is_given_once_and_only_to_what_is_about_the_file():
    first, other = parse("a: 1", "first.yaml"), parse("\n\na: 1", "other.yaml")
    with pytest.raises(SpecError) as caught, locate_errors(other), locate_errors(first):
        raise SpecError("wrong", "a")
    assert caught.value.place == "first.yaml:1:4"
    for error in (DpcoreError("no disk"), ParameterError("account", "less", "delta", 2)):
        place(error, first)
        assert error.place is None


@pytest.mark.parametrize(
    ("name", "valid", "report"),
    [
        ("gausian", ["gaussian", "laplace"], "; did you mean 'gaussian'?"),
        ("Mse", ["mse", "mae"], "; did you mean 'mse'?"),
        ("mi", ["mu", "count"], "; did you mean 'mu'?"),
        ("r2", ["mse", "mae"], "; valid: mae, mse"),
        ("zzz", [f"name_{i}" for i in range(30)], ""),
        ("x" * 10**6, ["gaussian"], "; valid: gaussian"),
    ],
)
def test_a_name_is_suggested_where_one_is_near(name, valid, report):
    assert nearest(name, valid) == report
    assert near(name, valid) == (report if "mean" in report else "")


def test_a_request_that_is_wrong_is_exit_code_2_whichever_class_a_host_catches():
    assert RequestError("no points").exit_code == 2


def test_errors_are_pickled_as_they_are():
    error = pickle.loads(pickle.dumps(SpecError("wrong", "a.b", place="s.yaml:1:1")))  # noqa: S301  # our own
    assert str(error) == "s.yaml:1:1: a.b: wrong"
