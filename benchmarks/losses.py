"""Poisson, gamma and quantile losses of shape functions on made-up tables, by loss and epsilon.

    python benchmarks/losses.py --tables claims visits --losses poisson squared --epsilons 1 4

Every split draws the table, the noise and 2000 records to judge on anew. Deviances and pinball
losses are relative to those of the best constant of the records. Beside them stand models of
scikit-learn without privacy: the generalised linear model on columns as they are, and boosting.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpcore
from dpcore import Categories, Domain, Range
from dpcore.mechanisms.gaussian import Gaussian
from dpcore_tables.shape_functions import ShapeFunctions

Numbers = NDArray[np.float64]
HELD = 2000
NUMBERS = {"age": (18.0, 90.0), "power": (0.0, 10.0), "years": (0.0, 30.0), "idle": (-1.0, 1.0)}
KINDS = ("a", "b", "c", "d")


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
    spread = 1 + 0.25 * columns["years"]
    return columns, np.clip(30 + 4 * score + spread * rng.standard_normal(count), 0, 80)


TABLES: dict[str, tuple[Callable[..., Any], float, float]] = {
    "claims": (claims, 0.0, 5.0),
    "visits": (visits, 0.0, 60.0),
    "costs": (costs, 0.0, 20_000.0),
    "waits": (waits, 0.0, 80.0),
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


def other_models(
    loss: str, level: float, columns: Any, labels: Numbers, held: Any
) -> list[Numbers]:
    """Predictions without privacy: a generalised linear model, and boosting."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import GammaRegressor, PoissonRegressor, QuantileRegressor

    def matrix(table: Any) -> Numbers:
        numbers = [(table[name] - low) / (high - low) for name, (low, high) in NUMBERS.items()]
        return np.column_stack([*numbers, *(table["kind"] == kind for kind in KINDS[1:])])

    linear = {
        "poisson": lambda: PoissonRegressor(alpha=0, max_iter=1000),
        "gamma": lambda: GammaRegressor(alpha=0, max_iter=1000),
        "quantile": lambda: QuantileRegressor(quantile=level, alpha=0),
    }[loss]()
    boosted = HistGradientBoostingRegressor(
        loss=loss, quantile=level if loss == "quantile" else None, random_state=0
    )
    rows, others = matrix(columns), matrix(held)
    few = slice(0, 2000) if loss == "quantile" else slice(None)  # a linear program
    return [
        linear.fit(rows[few], labels[few]).predict(others),
        boosted.fit(rows, labels).predict(others),
    ]


def main() -> None:
    """One line for each table, loss and epsilon: means over splits, and their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=[*TABLES], choices=[*TABLES])
    parser.add_argument("--losses", nargs="+", default=["poisson", "squared"])
    parser.add_argument("--level", type=float, default=0.5)
    parser.add_argument("--records", type=int, nargs="+", default=[2000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--first", type=int, default=90_000)
    parser.add_argument("--noise", choices=["float", "exact"], default="float")
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    for table in options.tables:
        make, low, high = TABLES[table]
        for count in options.records:
            judged = next(loss for loss in options.losses if loss != "squared")
            rows: dict[str, list[list[float]]] = {}
            for split in range(options.splits):
                rng = np.random.default_rng(options.first + split)
                columns, labels = make(rng, count + HELD)
                fitted = {name: cells[:count] for name, cells in columns.items()}
                held = {name: cells[count:] for name, cells in columns.items()}
                truth = labels[count:]

                def judge(name: str, predictions: Numbers) -> None:
                    if judged == "quantile":
                        constant = np.full(HELD, np.quantile(labels[:count], options.level))
                        ratio = pinball(options.level, truth, predictions)
                        ratio /= pinball(options.level, truth, constant)
                        cover = float(np.mean(truth <= predictions))
                    else:
                        constant = np.full(HELD, labels[:count].mean())
                        ratio = deviance(judged, truth, predictions)
                        ratio /= deviance(judged, truth, constant)
                        cover = float(predictions.mean() / truth.mean())
                    rows.setdefault(name, []).append([ratio, cover])

                for loss in options.losses:
                    for epsilon in options.epsilons:
                        level = options.level if loss == "quantile" else None
                        plan = dpcore.price(
                            domain=Domain(
                                columns={
                                    **{name: Range(*ends) for name, ends in NUMBERS.items()},
                                    "kind": Categories(KINDS),
                                },
                                target="y",
                                labels=Range(low, high),
                                exact=count,
                            ),
                            adjacency=dpcore.REPLACE_ONE,
                            budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=1e-5),
                            learner=ShapeFunctions(loss=loss, level=level),
                            mechanism=Gaussian(noise=options.noise),
                        )
                        model = plan.run({**fitted, "y": labels[:count]}).model
                        judge(f"{loss} {epsilon:g}", model.predict(held))
                if options.peers:
                    names = ("linear, no privacy", "boosting, no privacy")
                    peers = other_models(judged, options.level, fitted, labels[:count], held)
                    for name, predictions in zip(names, peers, strict=True):
                        judge(name, predictions)
            kind = f"pinball {options.level:g}" if judged == "quantile" else f"{judged} deviance"
            for name, figures in rows.items():
                mean = np.mean(figures, axis=0)
                error = np.std(figures, axis=0, ddof=1) / np.sqrt(len(figures))
                print(
                    f"{table:8s}{count:8d}  {name:22s}{kind} {mean[0]:.3f} ({error[0]:.3f})  "
                    f"{'coverage' if judged == 'quantile' else 'mean, relative'} {mean[1]:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
