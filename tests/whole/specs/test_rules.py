"""Rules of choice in a spec: a statement's number from public facts, before anything is priced."""

import math

import pytest

from dpcore.errors import DpcoreError
from dpcore.specs.spec import spec_of_text

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: RECORDS, columns: {a: [-1, 1], b: [-1, 1]}, target: [-1, 1]}
adjacency: RELATION
budget: {epsilon: 2, delta: 1e-5}
release:
  learner:
    name: random_features.ridge
    features: {name: cosines, count: 20, bandwidth: 1}
    regularization: CHOICE
  mechanism: gaussian
"""
CHOICE = "{rule: kernel_ridge/theorem_2_choices, take: lambda, m: records, r: 0.5}"


def spec(choice=CHOICE, records="400", relation="replace_one", **changes):
    text = SPEC.replace("RECORDS", records).replace("RELATION", relation)
    text = text.replace("CHOICE", choice)
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    return spec_of_text(text, "spec.yaml")


def chosen(made):
    return made.request.releases[0].learner.regularization


def test_a_rule_is_the_number_that_the_statement_gives():
    expected = 400 ** (-1 / (2 * 0.5 + 1))  # lambda = m^(-1/(2r + 1)), Nie & Wang, Theorem 2
    made = spec()
    assert chosen(made) == pytest.approx(expected)
    assert chosen(spec(CHOICE.replace("}", ", times: 3}"))) == pytest.approx(3 * expected)
    assert chosen(spec(CHOICE.replace("records", "400"))) == chosen(made)
    assert made.price().guarantee.epsilon <= 2


def test_the_lock_holds_the_number_itself():
    text = spec().text["release"]["learner"]
    assert text["regularization"] == chosen(spec())


def test_integers_are_rounded_up():
    rule = CHOICE.replace("}", ", times: 1000, whole: true}")
    made = spec("0.1", count=("count: 20", f"count: {rule}"))
    count = made.request.releases[0].learner.features.count
    assert isinstance(count, int)
    assert count == math.ceil(1000 * chosen(spec()))


@pytest.mark.parametrize(
    ("choice", "fields", "words"),
    [
        (CHOICE, {"records": "private", "relation": "add_remove"}, "records is private"),
        (CHOICE.replace("choices", "choicez"), {}, "theorem_2_choices"),
        (CHOICE.replace("take: lambda, ", ""), {}, "needs one of"),
        (CHOICE.replace("take: lambda", "take: lamda"), {}, "lambda"),
        (CHOICE.replace("r: 0.5", "q: 0.5"), {}, "no parameter"),
        (CHOICE.replace(", r: 0.5", ""), {}, "needs"),
        (CHOICE.replace("0.5", "half"), {}, "needs a number"),
        (CHOICE.replace("}", ", times: 0}"), {}, "number > 0"),
        (CHOICE.replace("}", ", which: proved}"), {}, "needs printed|needs corrected"),
        (CHOICE.replace("}", ", whole: 1}"), {}, "true or false"),
    ],
)
def test_what_is_no_rule_is_refused_at_its_place(choice, fields, words):
    with pytest.raises(DpcoreError, match=words) as caught:
        spec(choice, **fields)
    assert "regularization" in str(caught.value)


def test_a_group_column_may_have_its_categories_in_a_file(tmp_path):
    (tmp_path / "races.txt").write_text("p\nq\n")
    text = SPEC.replace("RECORDS", "400").replace("RELATION", "replace_one")
    text = text.replace("CHOICE", "0.1").replace(
        "target: [-1, 1]}", "groups: {race: {categories_from: races.txt}}, target: [-1, 1]}"
    )
    from dpcore.specs.spec import load_spec

    (tmp_path / "spec.yaml").write_text(text)
    assert load_spec(tmp_path / "spec.yaml").request.domain.groups["race"].values == ("p", "q")
