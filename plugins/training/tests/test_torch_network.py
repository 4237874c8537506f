"""Models of one's own in PyTorch: traced graphs, rows of one record, replay without PyTorch."""

import sys

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, Domain, Public, PublicRandomness
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, NoClaimError
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_training.program_bound import ProgramBound
from dpcore_training.torch_network import TorchNetwork

from builders import price_learner

torch = pytest.importorskip("torch")

RECORDS = 90
NAMES = ("a", "b", "c", "d", "e")


@attrs.frozen(kw_only=True)
class Tanh(TorchNetwork):
    """One hidden layer of hyperbolic tangents."""

    units: int = 16

    def parameters(self, stream, domain):
        first = stream.normal((domain.width, self.units))
        return {"first": first, "second": np.zeros((self.units, domain.classes or 1))}

    def output(self, parameters, row):
        return torch.tanh(row @ parameters["first"]) @ parameters["second"]

    def loss(self, parameters, row, target):
        logits = self.output(parameters, row)
        return torch.nn.functional.cross_entropy(logits[None], target[None])


@attrs.frozen(kw_only=True)
class Line(TorchNetwork):
    """A number, by a line without an intercept: the gradient is known."""

    slope: float = 1.0

    def parameters(self, stream, domain):
        return {"slopes": np.ones(domain.width)}

    def output(self, parameters, row):
        return row @ parameters["slopes"]

    def loss(self, parameters, row, target):
        return self.slope * (self.output(parameters, row) - target) ** 2 / 2


class Drops(Tanh):
    """Draws which columns count."""

    def loss(self, parameters, row, target):
        return super().loss(parameters, torch.nn.functional.dropout(row, 0.5), target)


class Branches(Tanh):
    """Decides in Python by what a record holds."""

    def loss(self, parameters, row, target):
        return super().loss(parameters, row, target) if row[0] > 0 else row.sum() * 0


class Vector(Tanh):
    """Returns one number a class."""

    def loss(self, parameters, row, target):
        return self.output(parameters, row)


class CallsBack(Tanh):
    """Hands records to numpy."""

    def loss(self, parameters, row, target):
        return super().loss(parameters, torch.from_numpy(np.abs(row.numpy())), target)


class Writes(Tanh):
    """Changes the weights that the next record is to see."""

    def loss(self, parameters, row, target):
        parameters["first"].mul_(1 + row.sum())
        return super().loss(parameters, row, target)


SEEN = torch.zeros(5)


class Remembers(Tanh):
    """Adds up the records that it sees."""

    def loss(self, parameters, row, target):
        SEEN.add_(row)
        return super().loss(parameters, row + SEEN, target)


class Foreign(Tanh):
    """Calls an operation that is not PyTorch's own, which is Python inside."""

    def loss(self, parameters, row, target):
        return super().loss(parameters, torch.ops.dpcore_tests.evaluation(row), target)


@torch.library.custom_op("dpcore_tests::look", mutates_args=())
def evaluation(row: torch.Tensor) -> torch.Tensor:
    """A copy, made in Python."""
    return row.clone()


@evaluation.register_fake
def _(row):
    return torch.empty_like(row)


def facts(*, classes=True, **options):
    columns = {name: Range(-1, 1) for name in NAMES}
    labels = Classes(("u", "v", "w")) if classes else Range(-2, 2)
    return Domain(columns=columns, target="y", labels=labels, **({"exact": RECORDS} | options))


def table(*, classes=True, count=RECORDS):
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(-1, 1, count) for name in NAMES}
    places = (columns["a"] > 0).astype(int) + (columns["b"] > 0) * (columns["a"] > 0)
    return {**columns, "y": np.array(["u", "v", "w"])[places] if classes else columns["a"]}


def planned(learner, domain=None):
    return price_learner(learner, domain=domain or facts(), epsilon=6.0)


class Scaled(Tanh):
    """Fills an array of its own, which is no one else's."""

    def loss(self, parameters, row, target):
        scaled = torch.zeros_like(row)
        scaled.copy_(row)
        scaled.mul_(2.0)
        return super().loss(parameters, scaled, target)


def rows_of(learner, records, domain):
    public = Public(domain=domain, randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    weights = np.random.default_rng(3).normal(size=query.shape)
    planned_query = query.with_args({"weights": weights})
    return learner.contributions(planned_query, records, public).integers


def test_a_run_learns_and_its_replay_needs_no_torch(monkeypatch):
    learner, data = Tanh(steps=30, rate=4.0), table(count=400)
    outcome = planned(learner, facts(exact=400)).run(data, replaying=HERE)
    model = outcome.models["release"]
    assert (model.predict(data) == data["y"]).mean() > 0.8
    # From here on PyTorch cannot be imported; what was published follows from the answers.
    for module in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ContractError, match="needs PyTorch"):
        model.predict(data)
    state = learner.start(Public(domain=facts(exact=400), randomness=outcome.randomness))
    for answer in outcome.answers["release"]:
        state = learner.update(state, answer)
    assert learner.model(state).weights.tobytes() == model.weights.tobytes()


def test_without_torch_nothing_is_priced_and_the_refusal_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(NoClaimError, match=r"pip install torch"):
        planned(Tanh())


def test_the_digest_of_the_graph_is_a_premise_and_follows_the_loss_and_its_numbers():
    digests = []
    for learner in (Tanh(), Tanh(), Tanh(steps=3), Tanh(units=17)):
        (premise,) = [p for p in planned(learner).guarantee.basis.premises if "program" in p]
        digests.append(premise)
    assert digests[0] == digests[1] == digests[2] != digests[3]
    domain = facts(classes=False)
    public = Public(domain=domain, randomness=PublicRandomness(1))
    assert Line().export(public).digest != Line(slope=2.0).export(public).digest


def test_rows_are_the_gradients_of_the_loss():
    domain = facts(classes=False)
    records = project_table(domain, table(classes=False))
    rows = rows_of(Line(clip=100.0), records, domain)
    weights = np.random.default_rng(3).normal(size=5)
    errors = records.features @ weights - records.labels / 2
    (query,) = Line(clip=100.0).queries(Public(domain=domain, randomness=PublicRandomness(1)))
    expected = errors[:, None] * records.features
    assert rows * 2.0**query.sum.unit == pytest.approx(expected, abs=1e-4)


def test_a_loss_may_write_to_an_array_of_its_own():
    domain = facts()
    records = project_table(domain, table())
    assert (rows_of(Scaled(), records, domain) != rows_of(Tanh(), records, domain)).any()
    order = np.arange(RECORDS)[::-1]
    turned = rows_of(Scaled(), records.take(order), domain)
    assert (turned[order] == rows_of(Scaled(), records, domain)).all()


@pytest.mark.parametrize("size", [1, 5, 37, 300])
def test_a_row_is_the_same_in_every_company(size):
    domain = facts()
    records, rng = project_table(domain, table()), np.random.default_rng(size)
    expected = rows_of(Tanh(), records.take(np.array([4])), domain)[0]
    places = np.insert(rng.choice(RECORDS, size), rng.integers(size + 1), 4)
    rows = rows_of(Tanh(), records.take(places), domain)
    assert (rows[places == 4] == expected).all()


def test_one_product_of_all_records_is_not_so():
    # What one record at a time is for: rows of a batch of another size have other last bits.
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(256, 784, generator=generator)
    weights = torch.randn(784, 33, generator=generator)
    assert ((rows @ weights)[:37] != rows[:37] @ weights).any() or (
        (rows @ weights)[0] != rows[0] @ weights
    ).any()


def test_no_law_of_sums_is_broken():
    domain = facts(classes=False, exact=None, limit=30)
    case = Case(learner=Line(steps=2), bound=ProgramBound(), domain=domain, adjacency=ADD_REMOVE)
    assert not [verdict for verdict in sum_verdicts(case) if verdict.failed]


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (Drops, "has effects: aten"),
        (Branches, "cannot export its loss"),
        (Vector, "cannot export its loss"),
        (CallsBack, "cannot export its loss"),
        (Foreign, "has effects: dpcore_tests"),
        (Writes, "has effects|cannot export"),
        (Remembers, "has effects|cannot export"),
    ],
)
def test_what_is_no_pure_loss_of_one_record_is_refused_when_it_is_priced(network, reason):
    with pytest.raises(NoClaimError, match=reason):
        planned(network())
