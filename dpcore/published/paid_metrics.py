"""Paid metrics with their error bars: what a run says of its hold-out, covered by the guarantee."""

import attrs

from dpcore.claims.plan.request import RELEASE
from dpcore.published.folder import Run

_MISS = 0.05


@attrs.frozen(kw_only=True)
class MetricInterval:
    """One metric of one release, and where it lies without the noise, at 95 %."""

    release: str
    metric: str
    value: float
    low: float
    high: float


def paid(run: Run) -> tuple[MetricInterval, ...]:
    """Every metric that a run paid for: a function of its answers and of its plan.

    Bars are of the noise alone: they say nothing of how few records were held out.
    """
    look, values = run.spec.request.look, run.answers.get(RELEASE, ())
    if look is None:
        return ()
    bars = []
    for ask, value in zip(run.plan.schedule.look, values, strict=True):
        assert ask.spread is not None, "metrics are released with Laplace noise"
        name, half_width = ask.query.name, ask.spread.within(_MISS)
        # The statistic is moved by the width of its noise; the metric then words all three alike.
        readings = [look.stated({name: value + move}) for move in (0.0, -half_width, half_width)]
        (release, metrics), *_ = readings[0].items()
        (metric,) = metrics
        middle, low, high = (reading[release][metric] for reading in readings)
        bars.append(
            MetricInterval(release=release, metric=metric, value=middle, low=low, high=high)
        )
    return tuple(bars)
