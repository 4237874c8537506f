"""Training by exact sums: accuracy on digits, and what a step costs next to a step in floats.

    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py digits [SPLITS]
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py clips [SPLITS]
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py quantiles [SPLITS]
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py chosen [SPLITS]
    OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false \\
        python benchmarks/training.py step
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py release boundary
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py noise
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py sampled
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py models [SETS]
    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py images [STEPS]

`digits` trains on 1,438 of the 1,797 images that ship with scikit-learn, under replace-one at delta
1e-5, and tests on the others; so do `clips`, with other clips and rates, and `quantiles`, with
clips that adapt; and `chosen`, with one of four rates by the best of ten runs on average, and with
each of them alone. `step` needs JAX: both sides see the same batch, and processor times are
compared.
`release_through` rounds, draws noise and releases, with records left out. `noise` compares the
error of running totals with that of independent noise at the same guarantee, where a record is in
one step; `sampled` where records are drawn, by plans that are priced as a run would be. `models`
compares what one pass over 60,000 synthetic records learns with and without bands. `images` takes
steps of
256 on an array of 60,000 synthetic images of 28 by 28 pixels: time and memory of the whole run.
"""

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import attrs
import numpy as np

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Distance,
    Domain,
    Learner,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Records,
    SumQuery,
    price,
)
from dpcore.claims.mechanisms.noise.grid import Grid
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.exact import Exact
from dpcore.randomness import Stream
from dpcore.transcript.replay_process import HERE
from dpcore_training.bands import best_bands, certificate
from dpcore_training.best_run import BestRun
from dpcore_training.dense import DenseNetwork

TRAINED = 1438
NETWORKS = ((64, 32), (64, 128, 64), (784, 128))  # inputs, then hidden layers; 10 classes
BATCH = 256
REPEATS = 7
PASS = 60_000


def domain(width: int, count: int, low: float, high: float) -> Domain:
    columns = {f"pixel_{place}": Range(low, high) for place in range(width)}
    return Domain(columns=columns, target="digit", labels=Classes(tuple(range(10))), exact=count)


def table(rows: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    return {**{f"pixel_{k}": column for k, column in enumerate(rows.T)}, "digit": labels}


def digits(splits: int) -> None:
    """The defaults, without and with a hidden layer."""
    for hidden in ((), (32,)):
        for epsilon in (1.0, 3.0):
            mean, deviation = digits_accuracy(DenseNetwork(hidden=hidden), epsilon, splits)
            print(f"hidden={hidden} epsilon={epsilon:g}: {mean:.3f} +- {deviation:.3f}", flush=True)


def clips(splits: int) -> None:
    """Other clips at steps of the same length, and rates that decay."""
    learners = [DenseNetwork(clip=clip, rate=1 / clip) for clip in (0.5, 1.0, 2.0, 4.0)]
    learners += [DenseNetwork(decay=0.9, rate=rate) for rate in (1.0, 1.5, 2.0)]
    compare(learners, splits)


def quantiles(splits: int) -> None:
    """Clips that follow a quantile, and one that is fixed."""
    candidates = ((None, 1.0), (0.2, 0.5), (0.2, 1.0))
    compare([DenseNetwork(quantile=fraction, rate=rate) for fraction, rate in candidates], splits)


def chosen(splits: int) -> None:
    """Four rates only, and one of them by random stopping."""
    candidates = [DenseNetwork(rate=rate) for rate in (0.1, 0.5, 2.0, 10.0)]
    for epsilon in (1.0, 3.0):
        for learner in (*candidates, BestRun(candidates=candidates)):
            mean, deviation = digits_accuracy(learner, epsilon, splits)
            name = f"rate={learner.rate:g}" if isinstance(learner, DenseNetwork) else "best_run"
            print(f"{name} epsilon={epsilon:g}: {mean:.3f} +- {deviation:.3f}", flush=True)


def compare(learners: list[DenseNetwork], splits: int) -> None:
    """Accuracy on digits of one learner after the other."""
    for epsilon in (1.0, 3.0):
        for learner in learners:
            mean, deviation = digits_accuracy(learner, epsilon, splits)
            print(f"clip={learner.clip:g} quantile={learner.quantile} rate={learner.rate:g} "
                  f"decay={learner.decay:g} epsilon={epsilon:g}: {mean:.3f} +- {deviation:.3f}",
                  flush=True)  # fmt: skip


def digits_accuracy(learner: Learner, epsilon: float, splits: int) -> tuple[float, float]:
    """Mean and standard deviation of test accuracy over random splits."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    accuracies = []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(images))
        train, test = order[:TRAINED], order[TRAINED:]
        plan = price(
            domain=domain(64, TRAINED, 0, 16),
            adjacency=REPLACE_ONE,
            budget=PrivacyBudget(epsilon=epsilon, delta=1e-5),
            learner=learner,
        )
        outcome = plan.run(table(images[train], labels[train]), replaying=HERE)
        predictions = outcome.models["release"].predict(table(images[test], labels[test]))
        accuracies.append(float((predictions == labels[test]).mean()))
    return float(np.mean(accuracies)), float(np.std(accuracies, ddof=1))


def processor_time(work: Callable[[], object]) -> float:
    """Median seconds of processor time of all threads, after one call that compiles."""
    work()
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return float(np.median(times))


def step() -> None:
    """One step of a batch: exact sum and noise here; clip, sum and noise in JAX's floats."""
    rng = np.random.default_rng(0)
    for width, *hidden in NETWORKS:
        learner = DenseNetwork(hidden=tuple(hidden))
        public = Public(domain=domain(width, BATCH, -1, 1), randomness=PublicRandomness(1))
        (query,) = learner.queries(public)
        weights = learner.initial(public.randomness.stream("training.start"), public.domain)
        weights[-10 * (hidden[-1] + 1) :] = rng.normal(size=10 * (hidden[-1] + 1)) * 0.1
        records = Records(
            features=rng.uniform(-1, 1, (BATCH, width)), labels=rng.integers(0, 10, BATCH) * 1.0
        )
        planned_query, release = (
            query.with_args({"weights": weights}),
            release_through(query.real_size),
        )
        exact = processor_time(
            partial(exact_step, learner, planned_query, records, public, release)
        )
        floats = processor_time(float_step(width, hidden, weights, records))
        print(f"{width}-{hidden}: {query.real_size} weights, {exact:.4f} s, floats {floats:.4f} s, "
              f"ratio {exact / floats:.2f}", flush=True)  # fmt: skip


def exact_step(
    learner: DenseNetwork,
    planned_query: SumQuery,
    records: Records,
    public: Public,
    release: Callable[[Exact], np.ndarray],
) -> np.ndarray:
    return release(learner.total_of(planned_query, records, public))


def release_through(size: int) -> Callable[[Exact], np.ndarray]:
    """Round to the grid, add exact noise, and make floats of it."""
    grid = Grid.for_release(1.0, size, Distance.L2)
    distribution, noise = (
        gaussian_distribution(1e6, size),
        Stream(b"0" * 32, ("noise",), secret=True),
    )

    def release(total: Exact) -> np.ndarray:
        steps = grid.round(total)
        steps += distribution.symmetric(size, noise)
        return grid.values(steps)

    return release


def float_step(
    width: int, hidden: list[int], weights: np.ndarray, records: Records
) -> Callable[[], object]:
    """DP-SGD as it is usually written: per-example gradients by vmap, clipped and summed."""
    import jax
    import jax.numpy as jnp

    shapes = [*pairwise((width, *hidden, 10))]

    def loss(flat, row, place):
        begin, values = 0, row
        for number, (inputs, units) in enumerate(shapes):
            layer = flat[begin : begin + (inputs + 1) * units].reshape(inputs + 1, units)
            values, begin = values @ layer[:-1] + layer[-1], begin + (inputs + 1) * units
            values = jax.nn.relu(values) if number < len(shapes) - 1 else values
        return -jax.nn.log_softmax(values)[place]

    @jax.jit
    def descend(flat, rows, places, key):
        gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(flat, rows, places)
        norms = jnp.linalg.norm(gradients, axis=1, keepdims=True)
        total = (gradients / jnp.maximum(norms, 1.0)).sum(axis=0)
        return flat - (total + jax.random.normal(key, flat.shape)) / BATCH

    arguments = (
        jnp.asarray(weights, dtype=jnp.float32),
        jnp.asarray(records.features, dtype=jnp.float32),
        jnp.asarray(records.labels, dtype=jnp.int32),
        jax.random.key(0),
    )
    return lambda: descend(*arguments).block_until_ready()


def boundaries() -> None:
    """The release boundary's proportion of a step, at 10^5 and 10^6 coordinates."""
    for size in (10**5, 10**6):
        total = Exact.of(np.random.default_rng(0).integers(-(2**40), 2**40, size), -20)
        release = release_through(size)
        normal = processor_time(lambda size=size: np.random.default_rng(0).standard_normal(size))
        seconds = processor_time(lambda release=release, total=total: release(total))
        print(f"{size} coordinates: {seconds:.4f} s, standard_normal {normal:.4f} s", flush=True)


def noise() -> None:
    """Error of running totals over that of independent noise: bands, the full root, and a tree."""
    for steps in (100, 300, 1000):
        fractions = []
        for count in (4, 16, 64, steps):
            totals = certificate(best_bands(count, steps), steps)
            fractions.append(f"{count} bands {totals.error / totals.independent:.3f}")
        least = totals.least / totals.independent
        tree = tree_error(steps) / math.sqrt((steps + 1) / 2)
        print(f"{steps} steps: {', '.join(fractions)}, none below {least:.3f}, "
              f"binary tree {tree:.3f}", flush=True)  # fmt: skip


def tree_error(steps: int) -> float:
    """Return the same of sums over dyadic intervals, each with its own noise, as far as they are
    ended.
    """
    levels = steps.bit_length()
    variances = [1.0]
    # A node is estimated by its own noisy sum and by its two halves, weighted by their precision.
    for _ in range(1, levels):
        variances.append(1 / (1 + 1 / (2 * variances[-1])))
    totals = [
        sum(variances[level] for level in range(levels) if step >> level & 1)
        for step in range(1, steps + 1)
    ]
    return math.sqrt(levels * float(np.mean(totals)))


def sampled() -> None:
    """Error of running totals with bands over that of DP-SGD: add/remove, delta 1e-5."""
    for records, batch, steps in ((60_000, 256, 2344), (60_000, 256, 235), (10_000, 256, 400)):
        for epsilon in (1.0, 2.0, 4.0, 8.0):
            errors = {}
            for count in (1, 2, 4, 8, 16, 32, 64):
                if batch * count > records:
                    continue
                plan = price(
                    domain=attrs.evolve(domain(1, records, 0, 1), exact=None, limit=records),
                    adjacency=ADD_REMOVE,
                    budget=PrivacyBudget(epsilon=epsilon, delta=1e-5),
                    learner=DenseNetwork(steps=steps, batch=batch, bands=count),
                )
                bands = best_bands(count, steps) if count > 1 else (1,)
                width = plan.schedule.queries[0].noise_distribution.std
                errors[count] = width * certificate(bands, steps).error
            fractions = [
                f"{count} bands {error / errors[1]:.3f}" for count, error in errors.items()
            ]
            print(f"{records} records, batch {batch}, {steps} steps, epsilon {epsilon:g}: "
                  f"{', '.join(fractions[1:])}", flush=True)  # fmt: skip


def synthetic(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 64 columns, and the class of ten whose noisy score is the largest."""
    directions = np.random.default_rng(seed).normal(size=(64, 10))
    rng = np.random.default_rng((seed, count))
    rows = rng.uniform(-1, 1, (count, 64))
    return rows, (rows @ directions + rng.normal(size=(count, 10))).argmax(axis=1)


def accuracy(seed: int, epsilon: float, learner: DenseNetwork) -> float:
    """On 10,000 fresh records, of a model of 60,000."""
    facts = attrs.evolve(domain(64, PASS, -1, 1), exact=None, limit=PASS)
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5)
    plan = price(domain=facts, adjacency=ADD_REMOVE, budget=budget, learner=learner)
    outcome = plan.run(table(*synthetic(seed, PASS)), replaying=HERE)
    rows, labels = synthetic(seed, PASS // 6)
    predictions = outcome.models["release"].predict(table(rows, labels))
    return float((predictions == labels).mean())


def models(sets: int) -> None:
    """One pass in batches of 256: test accuracy without bands, and with as many as help most.

    Each side has the best of four rates, by two sets that are not among those that are reported.
    """
    for epsilon, count in ((1.0, 8), (3.0, 16)):
        results, means = [], []
        for bands in (1, count):
            learners = [
                DenseNetwork(steps=235, batch=256, bands=bands, rate=rate)
                for rate in (2.0, 4.0, 8.0, 16.0)
            ]
            scores = [
                np.mean([accuracy(seed, epsilon, learner) for seed in (1000, 1001)])
                for learner in learners
            ]
            learner = learners[int(np.argmax(scores))]
            results.append([accuracy(seed, epsilon, learner) for seed in range(sets)])
            means.append(f"{bands} bands, rate {learner.rate:g}: {np.mean(results[-1]):.4f}")
        gain = np.subtract(results[1], results[0])
        error = gain.std(ddof=1) / math.sqrt(sets)
        print(f"epsilon {epsilon:g}: {'; '.join(means)}; gain {gain.mean():.4f} +- {error:.4f}",
              flush=True)  # fmt: skip


def images(steps: int) -> None:
    """Processor time and peak memory of a run on an array of bytes, its check and replay too."""
    import resource

    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (PASS, 784), dtype=np.uint8)
    plan = price(
        domain=attrs.evolve(domain(784, PASS, 0, 255), exact=None, limit=PASS),
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(epsilon=3.0, delta=1e-5),
        learner=DenseNetwork(hidden=(128,), steps=steps, batch=BATCH),
    )
    outcome = plan.run(table(rows, rng.integers(0, 10, PASS)), replaying=HERE)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{steps} steps, {outcome.models['release'].weights.size} weights: "
          f"{time.process_time():.1f} s, peak {peak:.2f} GB")  # fmt: skip


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else "digits"
    repeated = {"digits": digits, "clips": clips, "quantiles": quantiles, "models": models}
    repeated |= {"images": images, "chosen": chosen}
    if command in repeated:
        repeated[command](int(sys.argv[2]) if len(sys.argv) > 2 else 12)
    else:
        {"step": step, "door": boundaries, "noise": noise, "sampled": sampled}[command]()
