"""Gradient steps with noise across asks: from the spec to the ledger, and from public records."""

import gc
import json
import math
import pickle

import attrs
import numpy as np
import pytest
from turns import delta, sampled

import dpcore
import dpcore.sampling
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    PrivacyBudget,
    PublicRandomness,
    Records,
    Release,
    SecretRandomness,
    Session,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.sampling import amplify_sum
from dpcore.errors import ContractError, NoClaimError
from dpcore.learner import Public
from dpcore.ledger.book import Ledger
from dpcore.private.release_context import PastSums
from dpcore.transcript.replay_process import HERE
from dpcore_sgd.banded import Banded

from builders import price_learner, price_request
from doubles import domain, table

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: {at_most: 50}
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
  public: {reference: reference.csv}
adjacency: add_remove
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: sgd.banded, steps: 9, groups: 4, bands: 3}
  mechanism: gaussian
  inputs: [reference]
ledger: mine.ledger
"""


def write(path, columns):
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows), ""]))


def facts(**options):
    return attrs.evolve(domain(), exact=None, limit=40, **options)


def planned(learner, *, public=None, adjacency=ADD_REMOVE, **fields):
    return price_request(
        domain=facts() if adjacency.membership else domain(),
        adjacency=adjacency,
        releases=[Release(learner=learner, mechanism=Gaussian(), inputs=tuple(public or ()))],
        public=public or {},
        **fields,
    )


def test_a_contribution_is_the_gradient_of_half_a_squared_residual():
    learner, rng = Banded(), np.random.default_rng(0)
    public = Public(domain=facts(), randomness=PublicRandomness(1))
    block = Records(features=rng.uniform(-1, 1, (7, 2)), labels=rng.uniform(-1, 1, 7))
    weights = rng.normal(size=2)
    (query,) = learner.queries(public)
    planned_query = attrs.evolve(query, args={"weights": weights})
    kappa, step = math.sqrt(2), 1e-6

    def loss(row, label, at):
        return 0.5 * (row @ at / kappa - label) ** 2

    expected = [
        [(loss(x, y, weights + e) - loss(x, y, weights - e)) / (2 * step) for e in step * np.eye(2)]
        for x, y in zip(block.features, block.labels, strict=True)
    ]
    assert learner.contributions(planned_query, block, public) == pytest.approx(
        np.array(expected), abs=1e-8
    )


def test_public_records_give_the_start_and_their_fit_is_least_squares():
    learner, survey = Banded(steps=4, rate=1e-12), table(30, seed=5)
    outcome = planned(learner, public={"reference": survey}).run(table(), replaying=HERE)
    rows = np.column_stack([survey["a"], survey["b"]]) / math.sqrt(2)
    # The ridge as rows of their own: least squares by another way.
    rows = np.vstack([rows, math.sqrt(30e-3) * np.eye(2)])
    fit = np.linalg.lstsq(rows, np.r_[survey["y"], 0, 0], rcond=None)[0] / math.sqrt(2)
    assert outcome.models["release"].coefficients == pytest.approx(fit, rel=1e-6)
    outcome = planned(learner).run(table(), replaying=HERE)
    assert outcome.models["release"].coefficients == pytest.approx([0, 0], abs=1e-6)


def test_neither_noise_nor_charge_depends_on_the_start():
    plans = [
        planned(Banded(), public=p, randomness=PublicRandomness(3)) for p in ({"r": table(9)}, None)
    ]
    queries = [plan.schedule.queries[0] for plan in plans]
    assert queries[0].mechanism == queries[1].mechanism
    assert plans[0].charge() == plans[1].charge()


def test_without_a_public_number_there_is_nothing_to_divide_by():
    with pytest.raises(NoClaimError, match="at_most"):
        price_learner(Banded(), domain=attrs.evolve(domain(), exact=None), adjacency=ADD_REMOVE)


def test_bands_reach_from_the_spec_through_lock_and_ledger_to_the_replay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC)
    write(tmp_path / "people.csv", table())
    write(tmp_path / "reference.csv", table(12, seed=3))
    ledger = tmp_path / "mine.ledger"
    Ledger.create(ledger, epsilon=5.0, delta=1e-4, adjacency=ADD_REMOVE)
    result = dpcore.run("s.yaml")
    assert result.guarantee.provenance.replayed == "in a clean process"
    (query,) = json.loads((result.kept / "spec.lock.json").read_text())["plan"]["releases"][
        "release"
    ]
    assert (query["bands"], query["at_most"]) == ([64, 32, 24], 9)
    assert query["sampling"] == {"class": "Cyclic", "groups": 4, "probability": 1.0}
    # Nine steps by four groups: a record is in three answers, and three are charged.
    ((_, count),) = dpcore.load_spec("s.yaml").price().charge().events
    assert count == 3
    assert dpcore.replay(result.folder, public={"reference": "reference.csv"}).files == result.files
    assert len(result.answers["release"]) == 9
    # No past sum is left: not in this process, and the folder has answers only.
    gc.collect()
    assert not [item for item in gc.get_objects() if type(item) is PastSums]
    names = {path.name for path in result.kept.iterdir()}
    expected = {"spec.lock.json", "answers.npz", "model.npz", "guarantee.json", "guarantee.txt"}
    assert names == expected


def test_a_session_starts_steps_from_an_earlier_answer_or_public_records():
    with Session(
        PrivacyBudget(epsilon=4, delta=1e-5),
        facts(),
        table(),
        public={"reference": table(20, seed=2)},
        replaying=HERE,
    ) as session:
        session.release(Banded(steps=4), epsilon=1, mechanism=Gaussian(), inputs=["reference"])
        (release,) = session.releases
    assert [text for text in release.guarantee.basis.premises if "'reference'" in text]


class Changes(Banded):
    """Asks with other bands than were priced."""

    def ask(self, state):
        query = super().ask(state)
        return None if query is None else attrs.evolve(query, bands=(64,))


class Widens(Banded):
    """Asks for more turns than were priced."""

    def ask(self, state):
        query = super().ask(state)
        sampling = dpcore.sampling.Cyclic(groups=1)
        return None if query is None else attrs.evolve(query, sampling=sampling)


@pytest.mark.parametrize("learner", [Changes, Widens])
def test_an_ask_with_other_bands_or_turns_than_were_priced_is_refused(learner):
    with pytest.raises(ContractError, match="asked but not planned like this"):
        planned(learner(steps=4)).run(table(), replaying=HERE)


def test_a_window_shorter_than_the_participation_is_refused():
    with pytest.raises(NoClaimError, match="may be seen again after 2 asks"):
        planned(Banded(groups=2, bands=3))


def test_an_outcome_that_is_pickled_holds_no_past_sum():
    plan = planned(Banded(steps=4, groups=2, bands=2))
    outcome = plan.run(table(), secret=SecretRandomness.rehearsal(1), replaying=HERE)
    content = pickle.dumps(outcome)
    assert b"PastSums" not in content
    again = pickle.loads(content)  # noqa: S301  # written in the line above
    assert np.array_equal(
        again.models["release"].coefficients, outcome.models["release"].coefficients
    )


def distributions(queries, bands, square, diameter, groups, chance, group, lengths):
    turns = [t for t in range(queries) if t % groups == group]
    return [
        sampled(
            queries, bands, square, diameter, turns=turns, chance=chance, length=length, others=1
        )
        for length in lengths
    ]


@pytest.mark.slow
@pytest.mark.parametrize("chance", [1.0, 0.4])
@pytest.mark.parametrize("records", [1, 2, 3])
def test_what_is_charged_covers_every_enumerated_law_of_persons_and_of_replacements(
    records, chance
):
    """T = 3 and b = b' = 2: exact laws of the transcript against the events of the plan's kind."""
    from dpcore.claims.accounting.methods.auto import AutoAccountant
    from dpcore.claims.events.gaussian import GaussianEvent

    bands, square, groups = (2, 1), 30 * records**2, 2
    sampling = dpcore.sampling.Cyclic(groups=groups, probability=chance)
    norm = math.sqrt(sum(k * k for k in bands))

    def claim(adjacency, moved, absent):
        events = [
            GaussianEvent(mu=norm * m / math.sqrt(square - 9), adjacency=adjacency)
            for m in (moved, absent)
        ]
        event = amplify_sum(sampling, *events)
        return AutoAccountant(adjacency).compose(event, sampling.charged(3))

    diameter = int(4.5 * math.sqrt(square)) + 3 * records
    for group in range(groups):
        none, present, other = distributions(
            3, bands, square, diameter, groups, chance, group, (0, records, -records)
        )
        added = claim(ADD_REMOVE, records, records)
        for allowed in (0.1, 0.01, 1e-3):
            epsilon = added.epsilon(allowed).upper
            assert delta(epsilon, present, none) <= allowed
            assert delta(epsilon, none, present) <= allowed
        replaced = claim(REPLACE_ONE, 2 * records, records)
        for allowed in (0.1, 0.01, 1e-3):
            epsilon = replaced.epsilon(allowed).upper
            assert delta(epsilon, present, other) <= allowed
            assert delta(epsilon, other, present) <= allowed
