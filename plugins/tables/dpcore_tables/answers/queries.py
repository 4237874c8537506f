"""What a plan asks: each kind of ask, with what a record adds at most."""

import math

from dpcore import Distance, Query, Sum, SumQuery
from dpcore.rounding import up
from dpcore_tables import small
from dpcore_tables.layout import PARTS
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import BINS
from dpcore_tables.sums import EDGES, FACTOR_UNIT, GRADIENT_UNIT, GRAM_UNIT, PROFILE_UNIT


def queries_of(plan: Plan) -> tuple[Query, ...]:
    """Return each kind of ask, with what a record adds at most."""
    numbers, proportions = len(plan.layout.numeric), plan.shares()
    categorical = max(len(plan.layout.categorical), 1)
    # A record counts once, by a number in [0, 1] or in one bin; or a part of that.
    unit = FACTOR_UNIT if plan.weighted else 0
    unit_sum = Sum(clip=1.0, sign="non_negative", exponent=unit)
    # One count in each of the columns' histograms: the root of their number in l2.
    root = up(math.sqrt(numbers), roundings=1)
    label = Sum(clip=0.5) if plan.kind != "several" else Sum(clip=1.0, sign="non_negative")
    entries: dict[str, tuple[tuple[int, ...], Sum]] = {
        "count": ((1,), unit_sum),
        # At least the clip of one column: with no numbers the query is left out below.
        "means": ((numbers,), Sum(clip=max(plan.row, 0.5))),
        "squares": ((numbers,), Sum(clip=max(plan.square, 0.15), sign="non_negative")),
        "bins": ((numbers, BINS), Sum(clip=max(root, 1.0), sign="non_negative", exponent=unit)),
        "categories": (
            (sum(plan.layout.levels[column] for column in plan.layout.categorical),),
            Sum(clip=up(math.sqrt(categorical), roundings=1), sign="non_negative", exponent=unit),
        ),
        "label": ((plan.outputs,), label),
        "spread": ((1,), Sum(clip=small.LIMIT / 2)),
        "residuals": ((len(EDGES),), unit_sum),
    }
    for round_ in plan.rounds():
        width = round_.width + 1
        size = width * (width + 1) // 2
        # Inner products of two records' Gram vectors are >= 0: `acute` saves under replacement.
        entries[f"{round_.name}.metric"] = (
            (size,),
            Sum(clip=1.0, sign="acute", exponent=GRAM_UNIT),
        )
        entries[f"{round_.name}.residuals"] = ((len(EDGES),), unit_sum)
        entries[f"{round_.name}.gradient"] = (
            (width, plan.outputs),
            Sum(clip=1.0, exponent=GRADIENT_UNIT),
        )
    entries["look.gradient"] = (
        (1 + len(plan.layout.curves()), plan.outputs),
        Sum(clip=1.0, exponent=GRADIENT_UNIT),
    )
    entries["screen.profile"] = (
        (numbers, PARTS),
        Sum(clip=max(root, 1.0), exponent=PROFILE_UNIT),
    )
    entries["slope.directions"] = ((3,), Sum(clip=1.0, sign="acute", exponent=GRAM_UNIT))
    entries["slope.sums"] = (
        (max(plan.last_directions, 1), 1),
        Sum(clip=1.0, exponent=GRADIENT_UNIT),
    )
    entries["scores.pulls"] = (
        (1 + max(plan.score_directions, 1), plan.outputs),
        Sum(clip=1.0, exponent=GRADIENT_UNIT),
    )
    entries["fit.balance"] = ((1,), Sum(clip=1.0, sign="non_negative", exponent=FACTOR_UNIT))
    entries["survey.gradient"] = (
        (plan.candidates + 1, plan.outputs),
        Sum(clip=1.0, exponent=GRADIENT_UNIT),
    )
    if plan.cells:
        model = Sum(clip=1.0, sign="non_negative", exponent=PROFILE_UNIT)
        entries["table.counts"] = ((plan.cells,), model)
        # A query of the fit may be of tables: what a record adds is no longer.
        (width, _), model = entries["fit.gradient"]
        entries["fit.gradient"] = ((max(width, plan.cells), 1), model)
    # Repeated asks share one query, with a cap that the accountant counts.
    script = plan.script()
    return tuple(
        SumQuery(
            name=name,
            shape=shape,
            distance=Distance.L2,
            at_most=script.count(name),
            share=proportions[name],
            sum=summed,
        )
        for name, (shape, summed) in entries.items()
        if name in proportions
    )
