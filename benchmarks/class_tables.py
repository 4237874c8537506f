"""Synthetic tables of classes, by the kind of what makes classification hard: `imbalanced:1500`.

A number after the colon is that of training records; 2000 others are for testing. The truth of a
kind is always the same; records are drawn by a seed.
"""

import numpy as np

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Range

TESTING = 2000


def shifted(score, fraction):
    """Whether each record is of the rare class, with probability 1/(1 + exp(-score - shift))."""
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        is_high = np.mean(1 / (1 + np.exp(-(score + middle)))) > fraction
        low, high = (low, middle) if is_high else (middle, high)
    return 1 / (1 + np.exp(-(score + middle)))


def imbalanced(count, rng):
    """One class of 16 %, and 30 columns, half of which say a little each."""
    truth, score = np.random.default_rng(11), np.zeros(count)
    table, columns = {}, {}
    for place in range(18):
        name, values = f"x{place}", np.clip(rng.standard_normal(count), -3, 3)
        table[name], columns[name] = values, Range(-4, 4)
        score += 0.37 * truth.normal() * (place % 2 == 0) * values
    for place in range(12):
        name, values = f"c{place}", tuple(f"v{k}" for k in range(2 + place % 5))
        fractions = truth.dirichlet(np.full(len(values), 2.0))
        codes = rng.choice(len(values), count, p=fractions)
        effects = 0.44 * truth.normal(size=len(values)) * (place % 2 == 0)
        table[name], columns[name] = np.array(values)[codes], Categories(values)
        score += effects[codes] - fractions @ effects
    is_rare = rng.random(count) < shifted(score, 0.16)
    return {**table, "y": np.where(is_rare, "yes", "no")}, columns, ("no", "yes")


def clouds(count, rng):
    """Four classes of 9 to 42 %, each a normal cloud in 12 columns, of which half matter."""
    truth = np.random.default_rng(9)
    codes = rng.choice(4, count, p=truth.dirichlet(np.full(4, 4.0)))
    centres = truth.normal(size=(4, 12)) * (np.arange(12) % 2 == 0)
    values = np.clip(centres[codes] + 1.5 * rng.standard_normal((count, 12)), -5, 5)
    names, classes = [f"x{place}" for place in range(12)], ("k0", "k1", "k2", "k3")
    table = dict(zip(names, values.T, strict=True))
    return {**table, "y": np.array(classes)[codes]}, dict.fromkeys(names, Range(-6, 6)), classes


def makers(count, rng):
    """Twelve makers, each of 50 models: a model has three sizes, a body, a fuel and a gear."""
    truth, models, noise = np.random.default_rng(21), 600, 0.05
    fractions = truth.dirichlet(np.ones(models))
    sizes = 0.8 * truth.standard_normal((models, 1)) + 0.6 * truth.standard_normal((models, 3))
    kinds = {"body": (5, None), "fuel": (3, [0.6, 0.3, 0.1]), "gear": (2, None)}
    own = {name: truth.choice(size, models, p=p) for name, (size, p) in kinds.items()}
    codes = rng.choice(models, count, p=fractions)
    values = np.clip(sizes[codes] + noise * rng.standard_normal((count, 3)), -4, 4)
    table, columns = {}, {}
    for place in range(3):
        table[f"x{place}"], columns[f"x{place}"] = values[:, place], Range(-5, 5)
    for name, (size, _) in kinds.items():
        levels = tuple(f"{name}{k}" for k in range(size))
        is_other = rng.random(count) < 0.06
        chosen = np.where(is_other, rng.integers(size, size=count), own[name][codes])
        table[name], columns[name] = np.array(levels)[chosen], Categories(levels)
    classes = tuple(f"m{k}" for k in range(12))
    return {**table, "y": np.array(classes)[codes // 50]}, columns, classes


def ordered(count, rng):
    """Four classes cut from one bent score of five of eight columns, with a product."""
    x = rng.uniform(-1, 1, (count, 8))
    score = (
        np.sin(3 * x[:, 0]) + 2 * x[:, 1] ** 2 + x[:, 2] + np.abs(x[:, 3]) + 0.8 * x[:, 4] * x[:, 0]
    )
    score = (score - 1.17) / 1.25 + 0.25 * rng.standard_normal(count)
    names, classes = [f"x{place}" for place in range(8)], ("o0", "o1", "o2", "o3")
    table = dict(zip(names, x.T, strict=True))
    codes = np.digitize(score, [-0.75, 0.0, 0.8])
    return {**table, "y": np.array(classes)[codes]}, dict.fromkeys(names, Range(-1, 1)), classes


def bent(count, rng):
    """One class of 10 %, whose logarithm of the odds bends in three columns, with a product."""
    x = rng.uniform(-1, 1, (count, 8))
    score = 4 * np.sin(3 * x[:, 0]) - 6 * x[:, 1] ** 2 + 6 * np.abs(x[:, 2]) + 2 * x[:, 3]
    score = score + 4 * x[:, 4] * x[:, 5]
    names = [f"x{place}" for place in range(8)]
    is_rare = rng.random(count) < shifted(score, 0.1)
    table = {**dict(zip(names, x.T, strict=True)), "y": np.where(is_rare, "yes", "no")}
    return table, dict.fromkeys(names, Range(-1, 1)), ("no", "yes")


def silent(count, rng):
    """Five classes of 3 to 43 %, and 12 columns that say nothing of them."""
    names, values = [f"x{place}" for place in range(12)], tuple("abcde")
    table = {name: np.clip(rng.standard_normal(count), -3, 3) for name in names}
    codes = rng.choice(5, count, p=[0.43, 0.28, 0.17, 0.09, 0.03])
    return {**table, "y": np.array(values)[codes]}, dict.fromkeys(names, Range(-4, 4)), values


def counts(count, rng):
    """One class of 39 %, and 57 columns that are 0 for most records and have long tails else."""
    truth, is_rare = np.random.default_rng(31), rng.random(count) < 0.39
    table, columns = {}, {}
    for place in range(57):
        usual, name = np.log(1 / truth.uniform(0.6, 0.97) - 1), f"x{place}"
        effect, size, middle = 1.2 * truth.normal(), 0.3 * truth.normal(), truth.normal()
        is_there = rng.random(count) < 1 / (1 + np.exp(-usual - effect * (is_rare - 0.39)))
        values = np.exp(middle + size * is_rare + 1.2 * rng.standard_normal(count))
        table[name] = np.minimum(is_there * values, 100.0)
        columns[name] = Range(0, 120)
    return {**table, "y": np.where(is_rare, "yes", "no")}, columns, ("no", "yes")


KINDS = {k.__name__: k for k in (imbalanced, clouds, makers, ordered, bent, silent, counts)}


def drawn_classes(name, seed):
    """Training and test records, columns, target and labels of `KIND:COUNT`."""
    kind, count = name.split(":")
    table, columns, values = KINDS[kind](int(count) + TESTING, np.random.default_rng(seed))
    cuts = (slice(int(count)), slice(int(count), None))
    train, test = ({key: column[cut] for key, column in table.items()} for cut in cuts)
    return train, test, columns, "y", Classes(values)
