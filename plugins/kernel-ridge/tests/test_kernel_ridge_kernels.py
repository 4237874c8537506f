"""Kernels in specs: by name, with fields of their own, from any plugin; and as before."""

import types

import attrs
import pytest

import dpcore_kernel_ridge
from dpcore import Registry, hookimpl
from dpcore.errors import RegistryError, SpecError
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.specs.schema import json_schema
from dpcore.specs.spec import spec_of_text
from dpcore_kernel_ridge.matern import Matern32Kernel

SPEC = """
dpcore: 1
data:
  source: people.csv
  target: cost
  domain: {{records: 500, columns: {{age: [18, 90]}}, target: [0, 100]}}
adjacency: replace_one
budget: {{epsilon: 1, delta: 1e-6}}
release:
  learner: {{name: kernel_ridge.ridge, regularization: 0.1, {kernel}}}
  mechanism: {{name: per_query, questions: 3}}
  predictions_at: points.csv
"""


@attrs.frozen(kw_only=True)
class Wide(GaussianKernel):
    """A plugin's own kernel; it is the Gaussian one under another name."""


def registry():
    plugin = types.ModuleType("mine")
    plugin.dpcore_kernels = hookimpl(specname="dpcore_kernels")(lambda: {"mine.wide": Wide})
    return Registry.of(dpcore_kernel_ridge, plugin)


def spec(kernel):
    return spec_of_text(SPEC.format(kernel=kernel), "spec.yaml", registry())


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("bandwidth: 0.5", GaussianKernel(bandwidth=0.5)),
        ("kernel: gaussian, bandwidth: 0.5", GaussianKernel(bandwidth=0.5)),
        ("kernel: {name: gaussian, bandwidth: 0.5}", GaussianKernel(bandwidth=0.5)),
        ("kernel: gaussian", GaussianKernel(bandwidth=1.0)),
        ("kernel: linear", LinearKernel()),
        ("kernel: matern_3_2, bandwidth: 2", Matern32Kernel(bandwidth=2.0)),
        ("kernel: {name: mine.wide, bandwidth: 0.5}", Wide(bandwidth=0.5)),
        ("kernel: mine.wide, bandwidth: 0.5", Wide(bandwidth=0.5)),
    ],
)
def test_a_spec_names_a_kernel(kernel, expected):
    (release,) = spec(kernel).request.releases
    assert release.learner.kernel_in_force == expected
    (query,) = release.learner.queries(types.SimpleNamespace(domain=spec(kernel).request.domain))
    assert query.kernel == expected


def test_both_spellings_have_one_price():
    prices = [
        spec(kernel).price().guarantee.epsilon
        for kernel in ("kernel: matern_5_2, bandwidth: 0.5",
                       "kernel: {name: matern_5_2, bandwidth: 0.5}")
    ]  # fmt: skip
    assert prices[0] == prices[1]


@pytest.mark.parametrize(
    ("kernel", "error", "caught"),
    [
        ("kernel: gausian", RegistryError, r"10:\d+: .*kernel.name: .*'gausian'.*'gaussian'"),
        ("kernel: linear, bandwidth: 1", SpecError, r"10:\d+: .*LinearKernel does not have"),
        ("kernel: {name: gaussian, bandwidth: 2}, bandwidth: 1", SpecError, "has its own"),
        ("kernel: {name: gaussian, width: 2}", SpecError, "width"),
    ],
)
def test_a_wrong_kernel_is_refused_at_its_place(kernel, error, caught):
    with pytest.raises(error, match=caught):
        spec(kernel)


def test_the_schema_lists_kernels_and_events():
    definitions = json_schema(registry())["$defs"]
    assert "mine.wide" in str(definitions["kernel"])
    named = definitions["kernel"]["then"]["properties"]["name"]["enum"]
    assert {"matern_3_2", "linear"} <= {*named}
    assert "zcdp" in definitions["event"]["enum"]
