"""Laws of every hook around a release: each wrong component is caught, no right one is."""

import math

import attrs
import numpy as np
import pytest

from dpcore import Registry
from dpcore.errors import ParameterError
from dpcore.functions.kernels.base import Kernel
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.models.features.identity import Identity
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine
from dpcore_attacks.laws.engines.choices import choice_verdicts
from dpcore_attacks.laws.engines.engines import LAWS
from dpcore_attacks.laws.learners.metrics import metric_verdicts
from dpcore_attacks.laws.sources.sources import source_verdicts

from gallery.around import metrics, others, sources
from gallery.entry import Drawn, plugin


def report(**components):
    module = plugin("around", **{k: {f"around.{k}": c} for k, c in components.items()})
    registry = Registry.of(module)
    return examine("around", registry, Effort(pairs=1, samples=1), until_broken=False)


def broken(found):
    return {verdict.law.id for verdict in found if verdict.failed}


def untested(found):
    return {verdict.law.id for verdict in found if verdict.untested}


SLOW = {
    "RareClass", "OneLabel", "DropsDuplicates", "SortsRows", "RowsOnce",
    "EndsAtAThousand", "FewRows", "Stream", "AsArrays", "AddsAgain", "MissingIsLow",
    "CountsOneMore", "SplitsNothing", "ReportsMisfits", "WhereverTheyLie",
}  # fmt: skip


def some_slow(parts):
    """Parts of the gallery, of which few are quick tests."""
    return [
        pytest.param(
            part, marks=pytest.mark.slow if part.__name__ in SLOW else (), id=part.__name__
        )
        for part in parts
    ]


def named(part):
    return getattr(part, "__name__", None)


@pytest.mark.parametrize("metric", some_slow(metrics.WRONG))
def test_every_wrong_metric_is_caught(metric):
    assert metrics.WRONG[metric] in broken(metric_verdicts(metric()))


@pytest.mark.parametrize("metric", metrics.RIGHT, ids=named)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_no_right_metric_raises_an_alarm(metric, seed):
    found = metric_verdicts(metric(), seed)
    assert not broken(found) | untested(found)


@pytest.mark.parametrize("kind", some_slow(sources.WRONG))
def test_every_wrong_source_is_caught(kind):
    assert sources.WRONG[kind] in broken(source_verdicts(kind, "wrong"))


@pytest.mark.parametrize("kind", some_slow(sources.RIGHT))
def test_no_right_source_raises_an_alarm(kind):
    found = source_verdicts(kind, "right")
    assert not broken(found) | untested(found)


@pytest.mark.slow
def test_an_engine_that_adds_otherwise_than_the_local_one_is_caught():
    assert "engine.same-bits" in broken(choice_verdicts(others.AddsTwice, "wrong"))
    found = choice_verdicts(others.SmallBlocks, "right")
    assert not broken(found) | untested(found)


@pytest.mark.parametrize("kind", some_slow(others.WRONG_IN_PLACE))
def test_an_engine_that_adds_files_otherwise_than_the_core_is_caught(kind):
    assert broken(choice_verdicts(others.choice_of(kind), "wrong")) == {others.WRONG_IN_PLACE[kind]}


@pytest.mark.parametrize("kind", some_slow(others.RIGHT_IN_PLACE))
def test_an_engine_that_adds_files_as_the_core_does_raises_no_alarm(kind):
    found = choice_verdicts(others.choice_of(kind), "right")
    assert not broken(found) | untested(found)
    assert len(found) == len(LAWS)


def test_an_engine_that_takes_no_file_that_the_kit_writes_is_not_tested():
    (verdict,) = choice_verdicts(others.choice_of(others.AddsNowhere), "nowhere")
    assert verdict.untested
    assert "CsvFile: no file is added here; ParquetFiles" in verdict.detail


@pytest.mark.parametrize(
    ("kind", "component", "law"),
    [
        ("metrics", metrics.PaidAtATenth, "metric.sensitivity"),
        pytest.param(
            "sources", sources.DropsOutliers, "source.every-record", marks=pytest.mark.slow
        ),
        pytest.param("engines", others.AddsTwice, "engine.same-bits", marks=pytest.mark.slow),
        ("commands", others.silent, "command.help"),
        ("commands", others.writes, "command.help"),
        ("commands", others.forgiving, "command.help"),
    ],
)
def test_the_kit_catches_a_wrong_component_of_every_hook(kind, component, law):
    found = report(**{kind: component})
    assert not found.passed
    assert law in broken(found.verdicts)


def test_the_kit_passes_a_plugin_of_right_components_of_every_hook():
    found = report(
        metrics=metrics.LargestError,
        sources=sources.JsonFile,
        engines=others.SmallBlocks,
        commands=others.several,
    )
    assert found.passed, [v for v in found.verdicts if v.failed or v.untested]


@attrs.frozen(kw_only=True)
class NormOfTheDefault(GaussianKernel):
    """Its values grow as the bandwidth falls, and its norm is that of the default."""

    def __call__(self, left, right):
        return super().__call__(left, right) / self.bandwidth

    def diagonal(self, rows):
        return super().diagonal(rows) / self.bandwidth


@attrs.frozen(kw_only=True)
class NormOfOneScale(Identity):
    """Scales by a number that its norm does not read."""

    scale: float = 1.0

    def draw(self, domain, randomness):
        drawn = super().draw(domain, randomness)
        return Drawn(lambda encoded: drawn(encoded) * self.scale)


@attrs.frozen(kw_only=True)
class Narrow(GaussianKernel):
    """Right, and takes one bandwidth only."""

    def norm(self, domain):
        if self.bandwidth != 1.0:
            raise ParameterError("narrow", "1", "bandwidth", self.bandwidth)
        return super().norm(domain)


class WithoutFields(Kernel):
    """Right, and no class of attrs: the product of the rows, plus 1."""

    def norm(self, domain):
        return math.sqrt(1 + domain.feature_norm**2) * (1 + 1e-12)

    def error(self, domain):
        return 1e-12

    def diagonal(self, rows):
        return 1 + np.sum(rows * rows, axis=1)

    def __call__(self, left, right):
        return 1 + left @ right.T


@pytest.mark.parametrize(
    ("kind", "component", "law", "change"),
    [
        ("kernels", NormOfTheDefault, "kernel.norm", "(bandwidth=0.1)"),
        ("features", NormOfOneScale, "features.norm", "(scale=10)"),
    ],
)
def test_a_norm_that_is_right_at_one_number_alone_is_caught(kind, component, law, change):
    failed = {v.law.id: v.subject for v in report(**{kind: component}).verdicts if v.failed}
    assert change in failed[law]


@pytest.mark.parametrize(
    "component",
    [Narrow, pytest.param(WithoutFields, marks=pytest.mark.slow)],
    ids=named,
)
def test_no_right_kernel_of_unusual_form_raises_an_alarm(component):
    found = report(kernels=component)
    assert found.passed, [v for v in found.verdicts if v.failed or v.untested]


@pytest.mark.parametrize(
    ("kind", "component", "why"),
    [
        ("sources", sources.Unwritten, "write_table"),
        ("engines", others.NeedsAServer, "no server answers"),
        ("events", others.Single, "no mechanism of its plugin"),
    ],
)
def test_what_nothing_can_test_is_no_pass(kind, component, why):
    found = report(**{kind: component})
    assert not found.passed
    assert not broken(found.verdicts)
    assert any(why in verdict.detail for verdict in found.verdicts if verdict.untested)


def test_a_metric_about_no_target_of_the_kit_is_not_tested():
    @attrs.frozen
    class Nothing(metrics.Constant):
        def diameter(self, target):
            return None

    assert untested(metric_verdicts(Nothing())) >= {"metric.sensitivity", "metric.pure"}
