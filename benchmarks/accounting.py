"""How fast and how tight is composition, side by side with dp-accounting and prv-accountant?

    pip install dp-accounting opendp prv-accountant && python benchmarks/accounting.py [MODE]

MODE is `--prv`, `--fuzz`, `--distinct` or `--calibrate`; those but the first run alone.

One process, one BLAS thread, runs of the two interleaved, medians. dpcore certifies both ends of
its interval; the peer's number is an upper end. A ratio above 1 means that dpcore is faster.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import importlib
import pathlib
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

import dp_accounting as dp
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant

from dpcore.accountant import Accountant
from dpcore.adjacency import ADD_REMOVE
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.accounting.methods.renyi import RenyiAccountant
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.relation_text import parse_adjacency
from dpcore.event import Event
from dpcore.registry.events import Catalogue

DELTA = 1e-6
Release = tuple[Event, Any, int]


def gaussian(sigma: float, count: int) -> Release:
    """Return a Gaussian of width sigma, for us and for them."""
    ours = GaussianEvent(mu=1 / sigma, adjacency=ADD_REMOVE)
    return ours, dp.GaussianDpEvent(sigma), count


def laplace(scale: float, count: int) -> Release:
    """Laplace noise of this scale."""
    ours = LaplaceEvent(shift=1 / scale, adjacency=ADD_REMOVE)
    return ours, dp.LaplaceDpEvent(scale), count


def sampled(q: float, sigma: float, count: int) -> Release:
    """Return a Poisson-sampled Gaussian."""
    base, theirs, _ = gaussian(sigma, 1)
    ours = PoissonSampledEvent(event=base, sampling_probability=q)
    return ours, dp.PoissonSampledDpEvent(q, theirs), count


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def ours(make: Callable[[], Accountant], releases: list[Release]) -> Callable[[], Any]:
    """Compose and ask."""

    def run() -> Any:
        accountant = make()
        for event, _, count in releases:
            accountant = accountant.compose(event, count)
        return accountant.epsilon(DELTA)

    return run


def theirs(make: Callable[[], Any], releases: list[Release]) -> Callable[[], Any]:
    """Return the same with the peer."""

    def run() -> Any:
        accountant = make()
        for _, event, count in releases:
            accountant.compose(event, count)
        return accountant.get_epsilon(DELTA)

    return run


def compare(name: str, us: Callable[[], Any], them: Callable[[], Any], runs: int = 3) -> None:
    """One line: both results, both medians, the ratio."""
    pairs = [(timed(us), timed(them)) for _ in range(runs)]
    a = statistics.median(pair[0][0] for pair in pairs)
    b = statistics.median(pair[1][0] for pair in pairs)
    found, other = pairs[0][0][1], pairs[0][1][1]
    print(
        f"{name:34s} [{found.lower:.6f}, {found.upper:.6f}] {1e3 * a:9.1f} ms | "
        f"{other:.6f} {1e3 * b:9.1f} ms | ratio {b / a:.1f}",
        flush=True,
    )


def peer(step: float) -> Callable[[], Any]:
    """dp-accounting's PLD accountant on this grid."""
    return lambda: pld_privacy_accountant.PLDAccountant(value_discretization_interval=step)


def fuzz(sets: int = 300) -> None:
    """The worst time and the widest interval over random lists of up to twelve kinds."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "accounting"))
    random_set = importlib.import_module("random_sets").random_set

    times, widths = [], []
    before = yardstick()
    for seed in range(sets):
        data, delta = random_set(10_000 + seed, most=12)
        adjacency = parse_adjacency(data["adjacency"])

        def run(data: Any = data, adjacency: Any = adjacency, delta: float = delta) -> Any:
            accountant = AutoAccountant(adjacency)
            for event, count in Catalogue().counted(data["events"], adjacency):
                accountant = accountant.compose(event, count)
            return accountant, accountant.epsilon(delta)

        start = time.process_time()
        accountant, found = run()
        times.append((time.process_time() - start, seed))
        spent = accountant.methods["pld"].spent
        attained = all(event.curve.attained and not isinstance(event, ZcdpEvent) for event in spent)
        if attained and found.upper > 0:
            widths.append((found.width / max(1.0, found.upper), seed))
    print(
        f"{sets} random lists: worst {max(times)[0]:.2f} s (seed {max(times)[1]}), median "
        f"{statistics.median(one for one, _ in times):.3f} s of processor time; widest interval "
        f"where one pair attains every curve {max(widths)[0]:.2g} relative to max(1, epsilon) "
        f"(seed {max(widths)[1]}, {len(widths)} lists); "
        f"yardstick {(before + yardstick()) / 2:.2f} s"
    )


def distinct(count: int = 1000) -> None:
    """As many different sampled Gaussians, asked once."""
    releases = [sampled(0.01, 0.8 + 0.001 * i, 1) for i in range(count)]
    before = yardstick()
    start = time.process_time()
    found = ours(lambda: AutoAccountant(ADD_REMOVE), releases)()
    seconds = time.process_time() - start
    pace = (before + yardstick()) / 2
    print(
        f"{count} distinct sampled Gaussians: {found} in {seconds:.2f} s of processor time; "
        f"yardstick {pace:.2f} s"
    )


def yardstick() -> float:
    """Processor seconds of ten million passes of `s += i` among global names."""
    loop, names = "for i in range(10_000_000): s += i", "global s, i; s = 0"
    return timeit.timeit(loop, names, timer=time.process_time, number=1, globals={})


def calibrations(runs: int = 3) -> None:
    """The noise of three DP-SGD runs: ours, and the peer's by Renyi and by PLD, interleaved."""
    from dpcore_report.accounting.solving import Unknown, solve

    print(f"yardstick {yardstick():.2f} s")
    for epsilon, delta, batch, records, epochs in (
        (2.0, 1e-5, 256, 60_000, 10),
        (1.0, 1e-6, 512, 50_000, 30),
        (8.0, 1e-5, 1024, 1_000_000, 3),
    ):
        run = {"event": "dpsgd", "batch": batch, "records": records, "epochs": epochs}
        asked = {"adjacency": "add_remove", "events": [run]}
        q, steps = batch / records, -(-records * epochs // batch)

        def event(sigma: float, q: float = q, steps: int = steps) -> Any:
            once = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
            return dp.SelfComposedDpEvent(once, steps)

        def brent(
            make: Any, event: Any = event, epsilon: float = epsilon, delta: float = delta
        ) -> Any:
            return dp.calibrate_dp_mechanism(make, event, epsilon, delta, tol=1e-4)

        def solved(asked: Any = asked, epsilon: float = epsilon, delta: float = delta) -> Any:
            return solve(asked, Unknown.NOISE_MULTIPLIER, epsilon, delta).value

        named: dict[str, Callable[[], Any]] = {
            "dpcore": solved,
            "Renyi": lambda brent=brent: brent(rdp_privacy_accountant.RdpAccountant),
            "PLD": lambda brent=brent: brent(pld_privacy_accountant.PLDAccountant),
        }
        seconds: dict[str, list[float]] = {name: [] for name in named}
        values: dict[str, float] = {}
        for number in range(runs + 1):  # the first warms up
            for name, find in named.items():
                if name == "PLD" and number > 1:  # it takes far longer
                    continue
                start = time.process_time()
                values[name] = find()
                if number or name == "PLD":
                    seconds[name].append(time.process_time() - start)
        print(
            f"epsilon {epsilon}, delta {delta}, batch {batch} of {records}, {epochs} epochs: "
            + "; ".join(
                f"{name} {values[name]:.5f} in {statistics.median(seconds[name]):.3f} s"
                for name in named
            ),
            flush=True,
        )
    print(f"yardstick {yardstick():.2f} s")


def main() -> None:
    """Every comparison."""
    for mode, single in (
        ("--fuzz", fuzz),
        ("--distinct", distinct),
        ("--calibrate", calibrations),
    ):
        if mode in sys.argv:
            single()
            return
    mixture = [gaussian(20, 1000), laplace(10, 500), sampled(0.01, 1.0, 10_000)]
    gaussians = [gaussian(20 + 0.01 * i, 1) for i in range(1000)]
    types = [sampled(0.01, 0.8 + 0.02 * i, 200) for i in range(50)]
    print("dpcore [lower, upper], time | dp-accounting epsilon, time | ratio; delta = 1e-6")
    auto = lambda: AutoAccountant(ADD_REMOVE)  # noqa: E731
    pld = lambda: PldAccountant(ADD_REMOVE)  # noqa: E731
    for step in (1e-3, 1e-4):
        grid = lambda step=step: PldAccountant(ADD_REMOVE, step=step)  # noqa: E731
        for name, releases in (
            ("10,000 sampled", [sampled(0.01, 1.0, 10_000)]),
            ("50 types x 200", types),
            ("500 equal Laplace", [laplace(50, 500)]),
        ):
            compare(f"{name}, step {step}", ours(grid, releases), theirs(peer(step), releases))
    compare("mixture, adaptive step", ours(pld, mixture), theirs(peer(1e-4), mixture))
    compare("mixture, Renyi", ours(lambda: RenyiAccountant(ADD_REMOVE), mixture),
            theirs(rdp_privacy_accountant.RdpAccountant, mixture))  # fmt: skip
    many = [laplace(30 + 0.1 * i, 1) for i in range(500)]
    grid = lambda: PldAccountant(ADD_REMOVE, step=1e-3)  # noqa: E731
    compare("500 distinct Laplace, step 0.001", ours(grid, many), theirs(peer(1e-3), many), 1)
    singly = [laplace(10, 1)] * 500 + [gaussian(20, 1)] * 1000
    compare("1500 composed singly", ours(auto, singly), theirs(peer(1e-4), singly), 1)
    exact = lambda: GdpAccountant(ADD_REMOVE)  # noqa: E731
    compare(
        "1000 distinct Gaussians, exact", ours(exact, gaussians), theirs(peer(1e-4), gaussians), 1
    )

    def ask_after_each() -> Any:
        accountant = AutoAccountant(ADD_REMOVE)
        for _ in range(100):
            accountant = accountant.compose(LaplaceEvent(shift=0.1, adjacency=ADD_REMOVE))
            found = accountant.epsilon(DELTA)
        return found

    seconds, found = timed(ask_after_each)
    print(f"asked after each of 100 Laplace: {seconds:.3f} s, ends with {found}")
    if "--prv" in sys.argv:
        prv()


def prv() -> None:
    """prv-accountant on the mixture, at two of its error settings."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import (
        GaussianMechanism,
        LaplaceMechanism,
        PoissonSubsampledGaussianMechanism,
    )

    for error in (0.1, 0.01):

        def run(error: float = error) -> Any:
            accountant = PRVAccountant(
                prvs=[
                    GaussianMechanism(20),
                    LaplaceMechanism(0.1),
                    PoissonSubsampledGaussianMechanism(0.01, 1.0),
                ],
                max_self_compositions=[1000, 500, 10_000],
                eps_error=error,
                delta_error=DELTA / 1000,
            )
            return accountant.compute_epsilon(
                delta=DELTA, num_self_compositions=[1000, 500, 10_000]
            )

        seconds, ends = timed(run)
        print(f"prv-accountant, error {error}: {ends} in {seconds:.2f} s")


if __name__ == "__main__":
    main()
