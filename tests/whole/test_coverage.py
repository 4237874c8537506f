"""The page that says what each numbered statement of the seeds' papers is in dpcore."""

import re
from pathlib import Path

import pytest
import yaml

from whole import coverage

# How far each paper counts, by what it counts together.
THEOREMS = ("Theorem", "Lemma", "Proposition", "Definition", "Remark", "Condition", "Fact")
COUNTS = {
    "random_features_v1": {"": 13, "Algorithm": 1, "Assumption": 1, "Equation": 16, "Figure": 8}
    | {"Table": 1},
    "random_features": {"": 16, "Algorithm": 1, "Assumption": 1, "Equation": 17, "Figure": 9}
    | {"Table": 2},
    "kernel_ridge": {"Definition": 2, "Theorem": 3, "Remark": 1, "Lemma": 3, "Proposition": 4}
    | {"Equation": 3},
    "ntk": {"1.": 1, "3.": 8, "4.": 4, "5.": 10, "A.": 5, "B.": 1, "C.": 1, "D.": 1, "E.": 15}
    | {"F.": 3, "G.": 3, "H.": 1, "I.": 1, "J.": 1, "Algorithm": 2, "Equation": 34, "Figure": 1},
    "sgd": {"Definition": 2, "Lemma 1.": 1, "Assumption 2.": 2, "Theorem": 3, "Algorithm": 1}
    | {"Lemma 3.": 5, "Lemma 4.": 1, "Proposition 4.": 6, "Equation": 65},
}


def expanded(number):
    """Every number of a line, its kind in the singular: Lemmas E.2-E.4 are three."""
    kind, span = number.split(" ")
    first, _, last = span.partition("-")
    series, _, start = first.rpartition(".")
    series = f"{series}." if series else ""
    end = int(last.rpartition(".")[2]) if last else int(start)
    kind = kind.removesuffix("s") if last else kind
    return [(kind, series, index) for index in range(int(start), end + 1)]


@pytest.mark.parametrize("paper", coverage.PAPERS)
def test_every_number_of_a_paper_has_one_line(paper):
    counted = {}
    for number in coverage.PAPERS[paper]["numbers"]:
        for kind, series, index in expanded(number):
            # A paper counts its theorems together, by section, or each kind by itself.
            names = (
                f"{kind} {series}" if series else kind,
                series,
                "" if kind in THEOREMS else kind,
            )
            (group,) = [name for name in dict.fromkeys(names) if name in COUNTS[paper]][:1]
            counted.setdefault(group, []).append(index)
    expected = {group: [*range(1, count + 1)] for group, count in COUNTS[paper].items()}
    assert {group: sorted(indices) for group, indices in counted.items()} == expected


def test_every_name_is_one_that_the_plugins_bring_and_every_line_says_something():
    names = coverage.names_of_kinds()
    for paper in (*coverage.PAPERS.values(), *coverage.LATER.values()):
        for number, kind, name, remark in coverage.rows(paper["numbers"]):
            assert name in names[kind], number
            assert len(remark) > 3, number


def test_a_statement_of_a_paper_that_no_line_names_is_seen():
    """Every statement of the seeds' plugins is in a line, but for those of no number."""
    text = Path(coverage.__file__).with_name("coverage.yaml").read_text()
    for name in coverage.names_of_kinds()["statement"]:
        if name.split("/")[0] in ("random_features", "kernel_ridge", "ntk", "sgd"):
            assert re.search(rf"{name}\b", text) or name == "random_features/gamma_norm", name


def test_every_statement_item_and_component_of_a_later_paper_has_a_line():
    text = Path(coverage.__file__).with_name("coverage_later.yaml").read_text()
    for kind, names in coverage.names_of_kinds().items():
        for name in names:
            if re.match(
                "(explainable_boosting|hessian_mixing|shifted_interpolation|objective_perturbation)[./]",
                name,
            ):
                assert re.search(rf"{name}\b", text), (kind, name)


@pytest.mark.parametrize("file", ["coverage.yaml", "coverage_later.yaml"])
def test_no_number_is_listed_twice(file):
    text = Path(coverage.__file__).with_name(file).read_text()
    keys = re.findall(r'^    "(.*?)":', text, re.MULTILINE)
    lines = sum(len(paper["numbers"]) for paper in yaml.safe_load(text).values())
    assert len(keys) == lines


def test_the_page_is_what_the_list_says():
    assert coverage.PAGE.read_text() == coverage.page()
