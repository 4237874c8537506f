"""Attacks on the four papers' refuted claims, and on sound ones in their place: claimed epsilon
against the least that samples leave possible, at 95 % confidence.

    python benchmarks/attacks.py                      prints the table of claims
    python benchmarks/attacks.py --plot attacks.svg   draws it too (needs matplotlib)

Its table is in docs/records/attacks-measured.md. Every run is the runtime's own, on synthetic
neighbours; nothing is read.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import numpy as np

from dpcore.records import Records
from dpcore.specs.spec import Spec, spec_of_text
from dpcore_attacks.attacks.counterexample import Counterexample
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_attacks.audits.claims import ApproximateDP
from dpcore_attacks.audits.run_audit import audit_run
from dpcore_attacks.effort import FEWEST, Effort

HEAD = """
dpcore: 1
data:
  source: synthetic.csv
  target: y
  domain:
    records: {records}
    columns: {{{columns}}}
    target: [{low}, {high}]
    norm: 1
adjacency: {adjacency}
budget: {{{budget}}}
release:
"""
BUDGET = "epsilon: 1, delta: 1e-5"


@attrs.frozen(kw_only=True)
class Attack:
    """A claim, where it is, and a pair of neighbours; the falsifier's worst one if None.

    Args:
        pair: From the number of records and of columns.
        samples: Runs of either neighbour, at an effort of 1.
    """

    name: str
    paper: str
    release: str
    refuted: bool
    pair: Callable[[int, int], Pair] | None = None
    records: int = 20
    columns: int = 4
    labels: tuple[float, float] = (-0.2, 0.2)
    adjacency: str = "replace_one"
    budget: str = BUDGET
    samples: int = 10_000

    def spec(self) -> Spec:
        """As a file would say it."""
        head = HEAD.format(
            records=self.records,
            columns=", ".join(f"x{k}: [-1, 1]" for k in range(self.columns)),
            low=self.labels[0],
            high=self.labels[1],
            adjacency=self.adjacency,
            budget=self.budget,
        )
        return spec_of_text(head + self.release, f"{self.name}.yaml")


def scattered(records: int, columns: int, cutoff: float) -> Records:
    """Rows in all directions, no two alike, with labels up to `cutoff`."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(records, columns))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Records(features=rows, labels=cutoff * rng.uniform(-1, 1, records))


def one_label(cutoff: float) -> Callable[[int, int], Pair]:
    """Records in all directions, one of which has either of two opposite labels."""

    def pair(records: int, columns: int) -> Pair:
        found = scattered(records, columns, cutoff)
        first, second = found.labels.copy(), found.labels.copy()
        first[0], second[0] = cutoff, -cutoff
        return Pair(
            Records(features=found.features, labels=first),
            Records(features=found.features, labels=second),
            0,
        )

    return pair


def one_of_nothing(records: int, columns: int) -> Pair:
    """Zero records, one of which has a row and either of two opposite labels."""
    rows = np.zeros((records, columns))
    rows[0, 0] = 1.0
    before, after = np.zeros(records), np.zeros(records)
    before[0], after[0] = 1.0, -1.0
    return Pair(Records(features=rows, labels=before), Records(features=rows, labels=after), 0)


def one_copy(radius: float) -> Callable[[int, int], Pair]:
    """Return a record that occurs twice, and the same with one copy moved by `radius`."""

    def pair(records: int, columns: int) -> Pair:
        found = scattered(records, columns, 0.2)
        rows = 0.9 * found.features
        rows[1] = rows[0]
        moved = rows.copy()
        moved[1] = rows[0] + radius * found.features[2]
        return Pair(
            Records(features=rows, labels=found.labels),
            Records(features=moved, labels=found.labels),
            1,
        )

    return pair


NTK = {
    "records": 8,
    "adjacency": "{replace_features: {radius: 1e-6, label: fixed}}",
    "budget": "epsilon: 4, delta: 2e-3",
}
SGD = {"records": 1000, "columns": 2, "labels": (-1, 1)}
WAVES = "features: {name: cos_sin, count: 60, bandwidth: 0.16}"

ATTACKS = [
    Attack(
        name="real noise on complex coefficients",
        samples=20_000,
        paper="Liao et al., Algorithm 1",
        refuted=True,
        pair=one_label(0.2),
        release="""
  learner: {name: random_features.min_norm, waves: complex, count: 400, variance: 40}
  bound: {name: random_features.algorithm_1, eta: 0.375}
  mechanism: random_features.real_noise
""",
    ),
    Attack(
        name="the published code's scale",
        samples=15_000,
        paper="Liao et al., code",
        refuted=True,
        pair=one_label(0.5),
        labels=(0, 1),
        release="""
  learner: {name: random_features.min_norm, waves: cosines, count: 400, variance: 40}
  bound: random_features.published_code
  mechanism: {name: gaussian, noise: float}
""",
    ),
    Attack(
        name="projected interpolation",
        paper="the same, projected (T1)",
        refuted=False,
        release=f"""
  learner: {{name: random_features.projected_min_norm, {WAVES}, radius: 0.5}}
  mechanism: {{name: gaussian, noise: float}}
""",
    ),
    Attack(
        name="one scalar for a function",
        samples=15_000,
        paper="Nie & Wang, Proposition 1",
        refuted=True,
        budget="epsilon: 1",
        release="""
  learner: {name: kernel_ridge.ridge, kernel: gaussian, bandwidth: 1.0, regularization: 0.3}
  bound: kernel_ridge.proposition_1
  mechanism: kernel_ridge.one_scalar
""",
    ),
    Attack(
        name="a Gaussian process for a function",
        samples=8_000,
        paper="the same function (T11)",
        refuted=False,
        release="""
  learner: {name: kernel_ridge.ridge, kernel: gaussian, bandwidth: 1.0, regularization: 0.3}
  mechanism: gaussian_process
""",
    ),
    Attack(
        name="the square of the sensitivity",
        samples=4_000,
        paper="Wang & Guo, Theorem 2",
        refuted=True,
        pair=one_of_nothing,
        release="""
  learner:
    name: sgd.regression
    features: identity
    order: with_replacement
    steps: 1000
    rate: 1e-6
    clip: none
    average: 0
  bound: {name: sgd.printed, gamma: 5e-6}
  mechanism: {name: gaussian, noise: float, noise_multiplier: 4.985823}
""",
        **SGD,
    ),
    Attack(
        name="passes in a fixed order",
        samples=3_000,
        paper="the same iteration (T14)",
        refuted=False,
        pair=one_of_nothing,
        release="""
  learner: {name: sgd.regression, features: identity, order: cyclic, steps: 1000, rate: 1e-3}
  mechanism: {name: gaussian, noise: float}
""",
        **SGD,
    ),
    Attack(
        name="samples of a singular matrix",
        samples=1_200,
        paper="Gu et al., Equation (1)",
        refuted=True,
        pair=one_copy(1e-6),
        release="""
  learner: {name: ntk.printed, neurons: 256, regularization: 10, eta_min: 7e-3}
  bound: ntk.equation_1
  mechanism:
    kernel: ntk.gram_sampling
    inputs: {name: truncated_laplace, truncation: 1e-5}
    labels: {name: gaussian, share: 0.001}
""",
        **NTK,
    ),
    Attack(
        name="samples of K + lam0 I",
        samples=1_600,
        paper="the same, regular (Theorem 2.3)",
        refuted=False,
        pair=one_copy(1e-6),
        release="""
  learner: {name: ntk.regression, neurons: 256, regularization: 10}
  mechanism:
    kernel: gaussian_sampling
    inputs: gaussian
    labels: gaussian
""",
        **NTK,
    ),
]


@attrs.frozen
class Result:
    """One line: epsilon as claimed, and at least, at the claimed delta."""

    attack: Attack
    claimed: float
    delta: float
    measured: float
    found: bool
    by: str
    samples: int


def results(effort: Effort, fraction: float) -> Iterator[Result]:
    """Yield every attack in turn."""
    for attack in ATTACKS:
        spec = attack.spec()
        plan = spec.price(reproduce=attack.refuted)
        given = None
        if attack.pair is not None:
            (release,) = plan.schedule.releases
            (first, *_) = release.queries.values()
            given = Counterexample(
                query=first.query.name,
                arguments=None,
                pair=attack.pair(attack.records, attack.columns),
                records=attack.records,
                randomness=None if plan.randomness is None else plan.randomness.key,
                claimed=1.0,
                moved=1.0,
                origin="chosen for this claim",
            )
        tried = attrs.evolve(effort, samples=max(FEWEST, round(fraction * attack.samples)))
        found = audit_run(plan, tried, given=given)
        quoted, whole = found.audits
        assert isinstance(quoted.claim, ApproximateDP)
        best = quoted if attack.refuted else max(quoted, whole, key=lambda a: _epsilon(a))
        yield Result(
            attack,
            quoted.claim.epsilon,
            quoted.claim.delta,
            _epsilon(best),
            found.refuted,
            best.distinguisher,
            quoted.samples,
        )


def _epsilon(audit) -> float:
    return audit.epsilon if audit.claim.claimed > 0 else 0.0


def plot(found: list[Result], path: Path) -> None:
    """Claimed and measured epsilon side by side."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "dpcore"  # equal figures give equal files
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(found))
    axes.barh(places - 0.2, [r.claimed for r in found], 0.38, label="claimed", color="#9db4c8")
    colours = ["#c0392b" if r.found else "#2e8b57" for r in found]
    axes.barh(places + 0.2, [r.measured for r in found], 0.38, color=colours)
    axes.barh([0], [0], color="#c0392b", label="at least, claim refuted")
    axes.barh([0], [0], color="#2e8b57", label="at least, claim not refuted")
    axes.set_yticks(places, [f"{r.attack.name}\n{r.attack.paper}" for r in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("epsilon at the claimed delta; measured at 95 % confidence")
    axes.legend(fontsize=8)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print a table; draw it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    print("| claim | source | claimed | at least | verdict | distinguished by | samples |")
    print("|---|---|---|---|---|---|---|")
    found = []
    for result in results(Effort().times(given.effort), given.effort):
        found.append(result)
        verdict = "REFUTED" if result.found else "not refuted"
        print(
            f"| {result.attack.name} | {result.attack.paper} | {result.claimed:.3g} at delta = "
            f"{result.delta:g} | {np.floor(100 * result.measured) / 100:g} | {verdict} | "
            f"{result.by} | {result.samples} |",
            flush=True,
        )
    if given.plot:
        plot(found, given.plot)


if __name__ == "__main__":
    main()
