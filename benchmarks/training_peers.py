"""The same network at the same guarantee by dpcore, Opacus and JAX-Privacy.

    python -m venv peers && peers/bin/pip install torch==2.13.0 opacus==1.6.0 jax-privacy==2.0.0 \\
        scikit-learn flatbuffers
    peers/bin/pip install . ./plugins/*
    OMP_NUM_THREADS=1 peers/bin/python benchmarks/training_peers.py digits [SPLITS]
    OMP_NUM_THREADS=1 peers/bin/python benchmarks/training_peers.py divisor [DRAWS]

`digits` trains on 1,438 of the 1,797 images that ship with scikit-learn and tests on the others:
add/remove, at most 1,438 records, delta 1e-5, 60 steps of Poisson batches of 256 on average, clip
1, rate 1, the last weights. All start from the same weights and divide by 256. Each takes the noise
that its own accountant comes to. Steps per second are of processor time, of a whole training: here
with exact noise, the release boundary and the replay in the same process; there after a first
training that compiles. `divisor` runs the attack of `benchmarks/board/entries/opacus_divisor.py` on
one step of either.
"""

import functools
import sys
import time
import warnings
from collections.abc import Callable

import attrs
import numpy as np
from board.entries import opacus_divisor
from training import TRAINED, domain, table

from dpcore import ADD_REMOVE, PrivacyBudget, PublicRandomness, price
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.plan import Plan
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.black_box.attack import attack
from dpcore_attacks.black_box.claims import claim_of
from dpcore_training.dense import DenseNetwork

STEPS, BATCH, DELTA = 60, 256, 1e-5
PADDED = 32  # batches of JAX-Privacy are filled up to a multiple, so that few shapes are compiled
FACTS = attrs.evolve(domain(64, TRAINED, 0, 16), exact=None, limit=TRAINED)

Result = tuple[float, float, float]
"""Test accuracy, steps per second of processor time, and noise over the clip."""

Images = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Of training, pixels in [-1, 1] and digits; then of the test."""


def layers(hidden: tuple[int, ...]) -> list[np.ndarray]:
    """Return the weights that all start from, one array a layer; the last row is added as it is."""
    learner = DenseNetwork(hidden=hidden)
    start = learner.initial(PublicRandomness(1).stream("training.start"), FACTS)
    return [layer.copy() for layer in learner.layers(start, FACTS)]


def train_here(images: Images, hidden: tuple[int, ...], epsilon: float) -> Result:
    rows, digits, test_rows, test_digits = images
    plan = price(
        domain=FACTS,
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(epsilon=epsilon, delta=DELTA),
        learner=DenseNetwork(hidden=hidden, steps=STEPS, batch=BATCH, average=0.0),
    )
    begin = time.process_time()
    outcome = plan.run(table(8 * (rows + 1), digits), replaying=HERE)
    seconds = time.process_time() - begin
    predictions = outcome.models["release"].predict(table(8 * (test_rows + 1), test_digits))
    noise = plan.schedule.queries[0].noise_distribution.std
    return float((predictions == test_digits).mean()), STEPS / seconds, noise


@functools.cache
def opacus_noise(epsilon: float) -> float:
    from opacus.accountants.utils import get_noise_multiplier

    return get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=DELTA,
        sample_rate=BATCH / TRAINED,
        steps=STEPS,
        accountant="prv",
    )


def train_opacus(images: Images, hidden: tuple[int, ...], epsilon: float) -> Result:
    import torch
    from opacus import PrivacyEngine
    from opacus.data_loader import DPDataLoader
    from torch.utils.data import TensorDataset

    warnings.simplefilter("ignore")
    rows, digits, test_rows, test_digits = images
    parts: list[torch.nn.Module] = []
    for layer in layers(hidden):
        linear = torch.nn.Linear(layer.shape[0] - 1, layer.shape[1])
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(layer[:-1].T))
            linear.bias.copy_(torch.tensor(layer[-1]))
        parts += [linear, torch.nn.ReLU()]
    model = torch.nn.Sequential(*parts[:-1])
    rate = BATCH / TRAINED
    noise = opacus_noise(epsilon)
    data = TensorDataset(torch.tensor(rows, dtype=torch.float32), torch.tensor(digits))
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DPDataLoader(data, sample_rate=rate),
        noise_multiplier=noise,
        max_grad_norm=1.0,
    )
    optimizer.expected_batch_size = BATCH
    begin, step = time.process_time(), 0
    while step < STEPS:
        for batch_rows, batch_digits in loader:
            if step == STEPS:
                break
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch_rows), batch_digits).backward()
            optimizer.step()
            step += 1
    seconds = time.process_time() - begin
    with torch.no_grad():
        outputs = model(torch.tensor(test_rows, dtype=torch.float32))
    accuracy = float((outputs.argmax(dim=1).numpy() == test_digits).mean())
    return accuracy, STEPS / seconds, noise


@functools.cache
def jax_privacy_noise(epsilon: float) -> float:
    from jax_privacy import accounting

    return accounting.calibrate_noise_multiplier(
        target_epsilon=epsilon,
        accountant=accounting.DpsgdTrainingAccountant(accounting.PldAccountantConfig()),
        batch_sizes=BATCH,
        num_updates=STEPS,
        num_samples=TRAINED,
        target_delta=DELTA,
        tol=1e-3,
    )


def train_jax_privacy(images: Images, hidden: tuple[int, ...], epsilon: float) -> Result:
    import jax
    import jax.numpy as jnp
    import jax_privacy
    from jax_privacy import batch_selection, noise_addition

    rows, digits, test_rows, test_digits = images
    noise = jax_privacy_noise(epsilon)

    def outputs(weights, row):
        for number, layer in enumerate(weights):
            row = row @ layer[:-1] + layer[-1]
            row = jax.nn.relu(row) if number < len(weights) - 1 else row
        return row

    def loss(weights, row, digit):
        return -jax.nn.log_softmax(outputs(weights, row))[digit]

    gradient = jax_privacy.clipped_grad(
        loss, l2_clip_norm=1.0, batch_argnums=(1, 2), keep_batch_dim=False, normalize_by=BATCH
    )
    sampling = batch_selection.CyclicPoissonSampling(
        sampling_prob=BATCH / TRAINED, iterations=STEPS
    )
    start = [jnp.asarray(layer, dtype=jnp.float32) for layer in layers(hidden)]
    privatizer = noise_addition.gaussian_privatizer(stddev=noise / BATCH)

    @jax.jit
    def descend(weights, state, batch_rows, batch_digits, is_padding):
        mean = gradient(weights, batch_rows, batch_digits, is_padding_example=is_padding)
        noisy, state = privatizer.update(mean, state, weights)
        return jax.tree.map(jnp.subtract, weights, noisy), state

    # The second training is measured: all shapes of batches have been compiled by then.
    for _ in range(2):
        begin = time.process_time()
        weights, state = start, privatizer.init(start)
        for batch in sampling.batch_iterator(len(rows), rng=0):
            places = batch_selection.pad_to_multiple_of(batch, PADDED)
            weights, state = descend(weights, state, rows[places], digits[places], places == -1)
        jax.block_until_ready(weights)
        seconds = time.process_time() - begin
    predictions = np.asarray(jax.vmap(outputs, (None, 0))(weights, test_rows)).argmax(axis=1)
    return float((predictions == test_digits).mean()), STEPS / seconds, noise


def digits(splits: int) -> None:
    """Accuracy, noise and steps per second of all three."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = (images / 8 - 1).astype(np.float32)
    trainers: tuple[Callable[[Images, tuple[int, ...], float], Result], ...] = (
        train_here,
        train_opacus,
        train_jax_privacy,
    )
    for hidden in ((), (32,)):
        for epsilon in (1.0, 3.0):
            for trainer in trainers:
                results = []
                for split in range(splits):
                    order = np.random.default_rng(split).permutation(len(images))
                    train, test = order[:TRAINED], order[TRAINED:]
                    parts = (images[train], labels[train], images[test], labels[test])
                    results.append(trainer(parts, hidden, epsilon))
                accuracies, speeds, noises = np.array(results).T
                print(f"hidden={hidden} epsilon={epsilon:g} {trainer.__name__}: accuracy "
                      f"{accuracies.mean():.3f} +- {accuracies.std(ddof=1):.3f}, "
                      f"{np.median(speeds):.0f} steps a second, noise {noises[0]:.4f}",
                      flush=True)  # fmt: skip


@functools.cache
def planned_step() -> Plan:
    facts = attrs.evolve(domain(199, 16, -1, 1), exact=None, limit=16)  # 2,000 weights
    return price(
        domain=facts,
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(**opacus_divisor.CLAIM),
        learner=DenseNetwork(steps=1, batch=8),
        mechanism=Gaussian(noise_multiplier=4.0),
    )


def step_here(records: list[float]) -> float:
    """Return what the attack on Opacus looks at, of a step of a linear model of ten classes
    here.
    """
    zeros = table(np.zeros((len(records), 199)), np.zeros(len(records), dtype=int))
    weights = planned_step().run(zeros, replaying=HERE).models["release"].weights
    return float(np.sqrt(np.square(weights).mean()))


def divisor(draws: int) -> None:
    """What 15 and 16 records say, through the scale of the weights."""
    for release in (opacus_divisor.release, step_here):
        report = attack(
            release,
            claim_of(**opacus_divisor.CLAIM),
            neighbours=[opacus_divisor.PAIR],
            relation=ADD_REMOVE,
            draws=draws,
            subject=release.__module__,
        )
        print(report.describe(), flush=True)


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else "digits"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else {"digits": 12, "divisor": 400}[command]
    {"digits": digits, "divisor": divisor}[command](count)
