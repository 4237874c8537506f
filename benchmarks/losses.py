"""Poisson, gamma and quantile losses of shape functions on synthetic tables, by loss and epsilon.

    python benchmarks/losses.py --table visits --loss poisson --epsilons 1 4

Every split draws the table, the noise and 2000 records to judge on anew. Deviances and pinball
losses are relative to those of the best constant of the records; then is the coverage of a
quantile, or the mean prediction over the mean label. Next to them stand the squared loss, and
models of scikit-learn without privacy: the generalised linear model on columns as they are (of
quantiles on 2000 records), and boosting. Rules were chosen on claims, visits, costs and waits.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpcore
from dpcore import Categories, Domain, Range
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore_tables.objective.losses import NAMES
from dpcore_tables.shape_functions import ShapeFunctions

Numbers = NDArray[np.float64]
HOLD_OUT = 2000
NUMBERS = {"age": (18.0, 90.0), "power": (0.0, 10.0), "years": (0.0, 30.0), "idle": (-1.0, 1.0)}
KINDS = ("a", "b", "c", "d")
NULLS = {"n1": Range(0, 1), "n2": Range(-1, 3), "n3": Categories(("p", "q", "r"))}
"""Columns that say nothing, and that only `--errors` adds; `idle` is another in all tables but
calls."""


def effects(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Columns, and a sum of functions of three of them with mean near 0 and deviation near 1."""
    columns: dict[str, Any] = {
        name: rng.uniform(low, high, count) for name, (low, high) in NUMBERS.items()
    }
    columns["kind"] = rng.choice(KINDS, count, p=[0.4, 0.3, 0.2, 0.1])
    bent = ((columns["age"] - 50) / 25) ** 2 - 0.7
    steps = np.array([0.0, 0.4, -0.6, 1.1])[np.searchsorted(KINDS, columns["kind"])]
    return columns, 0.7 * bent + 0.6 * np.sin(columns["power"] / 2) + steps


def claims(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Rare counts: a mean of about 0.15 of a range of 5."""
    columns, score = effects(rng, count)
    return columns, rng.poisson(0.1 * np.exp(0.8 * score)).clip(0, 5).astype(float)


def visits(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Frequent counts: a mean of about 5 of a range of 60."""
    columns, score = effects(rng, count)
    return columns, rng.poisson(4 * np.exp(0.6 * score)).clip(0, 60).astype(float)


def costs(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Gamma of shape 1.5, with a mean of about 1500 of a range of 20,000."""
    columns, score = effects(rng, count)
    drawn = rng.gamma(1.5, 1000 * np.exp(0.5 * score) / 1.5)
    return columns, np.clip(drawn, 1, 20_000)


def waits(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Numbers whose spread grows with one column and whose mean bends with another."""
    columns, score = effects(rng, count)
    noise_distribution = 1 + 0.25 * columns["years"]
    return columns, np.clip(30 + 4 * score + noise_distribution * rng.standard_normal(count), 0, 80)


def calls(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Counts with a product, a mean of about 3 of a range of 200."""
    columns, score = effects(rng, count)
    rates = np.exp(0.4 * score + 0.08 * columns["idle"] * columns["power"] + 0.7)
    return columns, rng.poisson(rates).clip(0, 200).astype(float)


def damages(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Gamma of shape 0.6, steeper than an exponential law, with a step at 30 years of age."""
    columns, score = effects(rng, count)
    means = 300 * np.exp(0.3 * score + 0.8 * (columns["age"] < 30))
    return columns, np.clip(rng.gamma(0.6, means / 0.6), 0.1, 5000)


def skewed(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Numbers]:
    """Lognormal noise around a bent mean, whose size steps with the kind."""
    columns, score = effects(rng, count)
    noise = np.exp(rng.standard_normal(count)) * np.where(columns["kind"] == "a", 3.0, 1.0)
    return columns, np.clip(10 + 2 * score + noise, 0, 60)


TABLES: dict[str, tuple[Callable[..., Any], float, float]] = {
    "claims": (claims, 0.0, 5.0),
    "visits": (visits, 0.0, 60.0),
    "costs": (costs, 0.0, 20_000.0),
    "waits": (waits, 0.0, 80.0),
    "calls": (calls, 0.0, 200.0),
    "damages": (damages, 0.0, 5000.0),
    "skewed": (skewed, 0.0, 60.0),
}


def deviance(loss: str, labels: Numbers, means: Numbers) -> float:
    """Mean deviance of predicted means, at least 1e-6 of the largest label."""
    means = np.maximum(means, 1e-6 * labels.max())
    if loss == "gamma":
        return float(np.mean(2 * (labels / means - 1 - np.log(labels / means))))
    logs = np.log(np.where(labels > 0, labels / means, 1.0))
    return float(np.mean(2 * (labels * logs - labels + means)))


def pinball(level: float, labels: Numbers, quantiles: Numbers) -> float:
    """Mean pinball loss."""
    short = labels - quantiles
    return float(np.mean(np.maximum(level * short, (level - 1) * short)))


def judged(
    loss: str, level: float, labels: Numbers, truth: Numbers, predictions: Numbers
) -> list[float]:
    """Return a loss relative to the constant's, and the coverage, or the mean relative to the
    labels'.
    """
    if loss == "quantile":
        constant = np.full(len(truth), np.quantile(labels, level))
        ratio = pinball(level, truth, predictions) / pinball(level, truth, constant)
        return [ratio, float(np.mean(truth <= predictions))]
    constant = np.full(len(truth), labels.mean())
    ratio = deviance(loss, truth, predictions) / deviance(loss, truth, constant)
    return [ratio, float(predictions.mean() / truth.mean())]


def matrix(table: Any) -> Numbers:
    """Columns as they are, in [0, 1], and one for every kind but the first."""
    numbers = [(table[name] - low) / (high - low) for name, (low, high) in NUMBERS.items()]
    return np.column_stack([*numbers, *(table["kind"] == kind for kind in KINDS[1:])])


def other_models(
    loss: str, level: float, table: Any, labels: Numbers, covered: Any
) -> list[Numbers]:
    """Predictions without privacy: a generalised linear model, and boosting."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import GammaRegressor, PoissonRegressor, QuantileRegressor

    linear = {
        "poisson": PoissonRegressor(alpha=0, max_iter=1000),
        "gamma": GammaRegressor(alpha=0, max_iter=1000),
        "quantile": QuantileRegressor(quantile=level, alpha=0),
    }[loss]
    boosted = HistGradientBoostingRegressor(
        loss=loss, quantile=level if loss == "quantile" else None, random_state=0
    )
    rows, others = matrix(table), matrix(covered)
    few = slice(0, 2000) if loss == "quantile" else slice(None)  # a linear program
    return [
        linear.fit(rows[few], labels[few]).predict(others),
        boosted.fit(rows, labels).predict(others),
    ]


def private_model(name: str, table: Any, labels: Numbers, epsilon: float, options: Any) -> Any:
    """Return a release of shape functions with one loss."""
    _, low, high = TABLES[options.table]
    columns = {**{name: Range(*ends) for name, ends in NUMBERS.items()}, "kind": Categories(KINDS)}
    columns |= {name: column for name, column in NULLS.items() if name in table}
    plan = dpcore.price(
        domain=Domain(columns=columns, target="y", labels=Range(low, high), exact=len(labels)),
        adjacency=dpcore.REPLACE_ONE,
        budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=1e-5),
        learner=ShapeFunctions(loss=name, level=options.level if name == "quantile" else None),
        mechanism=Gaussian(noise=options.noise),
    )
    return plan.run({**table, "y": labels}).model


def with_nulls(options: argparse.Namespace, seed: int, count: int) -> tuple[Any, Numbers]:
    """Return a table with columns that say nothing."""
    rng = np.random.default_rng(seed)
    table, labels = TABLES[options.table][0](rng, count)
    table |= {"n1": rng.random(count), "n2": np.clip(rng.normal(0, 1, count), -1, 3)}
    return table | {"n3": rng.choice(["p", "q", "r"], count, p=[0.6, 0.3, 0.1])}, labels


def errors(options: argparse.Namespace) -> None:
    """P values of columns that say nothing, and standard errors next to what fits differ by."""
    for count in options.records:
        for epsilon in options.epsilons:
            p_values, nulls, rest = [], [], []
            for split in range(options.splits):
                table, labels = with_nulls(options, options.first + split, count)
                for shape in private_model(options.loss, table, labels, epsilon, options).shapes():
                    is_null = {*shape.columns} <= {*NULLS, "idle"}
                    if is_null and len(shape.columns) == 1:
                        p_values.append(shape.p_value)
                    (nulls if is_null or len(shape.columns) == 2 else rest).append(shape.found)
            fractions = [float(np.mean(np.array(p_values) < level)) for level in (0.05, 0.2)]
            per_table = [sum(shapes) / options.splits for shapes in (nulls, rest)]
            table, labels = with_nulls(options, options.first - 1, count)
            hold_out, _ = with_nulls(options, options.first - 2, 400)
            models = [
                private_model(options.loss, table, labels, epsilon, options)
                for _ in range(options.errors)
            ]
            fits = np.array([model.predict(hold_out) for model in models])
            # A logarithm's errors are of the logarithm.
            fits = np.log(fits) if options.loss in ("poisson", "gamma") else fits
            measured = np.sqrt(np.mean(np.var(fits, axis=0, ddof=1)))
            claimed = np.sqrt(np.mean([m.standard_errors(hold_out) ** 2 for m in models[:4]]))
            print(
                f"{options.table} {count}, {epsilon:g}: p below 0.05 and 0.2 in {fractions}, "
                f"found per table {per_table}, error {measured:.4g}, claimed {claimed:.4g}",
                flush=True,
            )


def main() -> None:
    """One line for each size, loss and epsilon: means over splits, and their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="visits", choices=[*TABLES])
    parser.add_argument("--loss", default="poisson", choices=NAMES)
    parser.add_argument("--level", type=float, default=0.5)
    parser.add_argument("--records", type=int, nargs="+", default=[2000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--first", type=int, default=70_000)
    parser.add_argument("--noise", choices=["grid", "float"], default="grid")
    parser.add_argument("--errors", type=int, default=0, help="fits of one table")
    options = parser.parse_args()
    if options.errors:
        errors(options)
        return
    if options.loss == "squared":
        parser.error("the squared loss is next to every other one")
    make = TABLES[options.table][0]
    for count in options.records:
        figures: dict[str, list[list[float]]] = {}
        for split in range(options.splits):
            columns, labels = make(np.random.default_rng(options.first + split), count + HOLD_OUT)
            table = {name: cells[:count] for name, cells in columns.items()}
            hold_out = {name: cells[count:] for name, cells in columns.items()}
            predictions: dict[str, Numbers] = {}
            for name in (options.loss, "squared"):
                for epsilon in options.epsilons:
                    model = private_model(name, table, labels[:count], epsilon, options)
                    predictions[f"{name}, {epsilon:g}"] = model.predict(hold_out)
            peers = other_models(options.loss, options.level, table, labels[:count], hold_out)
            predictions |= dict(zip(("linear, none", "boosting, none"), peers, strict=True))
            for name, numbers in predictions.items():
                distribution = (options.loss, options.level, labels[:count], labels[count:])
                figures.setdefault(name, []).append(judged(*distribution, numbers))
        for name, rows in figures.items():
            mean = np.mean(rows, axis=0)
            error = np.std(rows, axis=0, ddof=1)[0] / np.sqrt(len(rows))
            figure = f"{mean[0]:.3f} ({error:.3f})  {mean[1]:.3f}"
            print(f"{options.table:8s}{count:7d}  {name:16s}{figure}", flush=True)


if __name__ == "__main__":
    main()
