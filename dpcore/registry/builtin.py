"""The core's own components, registered through the same hooks as any plugin's.

They are named here and imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpcore.registry.hookspecs import hookimpl
from dpcore.registry.lazy_mapping import LazyMapping

if TYPE_CHECKING:
    import click

    from dpcore.accountant import Accountant
    from dpcore.bound import SensitivityBound
    from dpcore.engines.choice import EngineChoice
    from dpcore.events.base import Event
    from dpcore.functions.kernels.base import Kernel
    from dpcore.learning.features.base import FeatureMap
    from dpcore.learning.metrics.base import Metric
    from dpcore.mechanism import AnyMechanism
    from dpcore.records.location import Location

HOMES: Mapping[str, tuple[str, str]] = {
    "approximate": ("dpcore.events.randomized_response", "ApproximateEvent"),
    "composed": ("dpcore.events.composition", "ComposedEvent"),
    "curve": ("dpcore.events.renyi_curve", "CurveEvent"),
    "discrete_gaussian": ("dpcore.mechanisms.discrete_gaussian", "DiscreteGaussianEvent"),
    "discrete_laplace": ("dpcore.mechanisms.discrete_laplace", "DiscreteLaplaceEvent"),
    "exponential_mechanism": ("dpcore.events.exponential", "ExponentialMechanismEvent"),
    "gaussian": ("dpcore.events.gaussian", "GaussianEvent"),
    "gaussian_mixture": ("dpcore.events.gaussian_mixture", "GaussianMixtureEvent"),
    "gaussian_sampling": ("dpcore.events.gaussian_sampling", "GaussianSamplingEvent"),
    "hit_mixture": ("dpcore.events.hit_mixture", "HitMixtureEvent"),
    "l2_gamma": ("dpcore.mechanisms.l2_gamma", "L2GammaEvent"),
    "laplace": ("dpcore.events.laplace", "LaplaceEvent"),
    "poisson_replaced": ("dpcore.events.poisson_replaced", "PoissonReplacedEvent"),
    "poisson_sampled": ("dpcore.events.poisson", "PoissonSampledEvent"),
    "pure": ("dpcore.events.randomized_response", "PureEvent"),
    "random_stopping": ("dpcore.events.random_stopping", "RandomStoppingEvent"),
    "randomized_response": ("dpcore.events.randomized_response", "RandomizedResponseEvent"),
    "renyi": ("dpcore.events.renyi_curve", "RenyiEvent"),
    "truncated_batch": ("dpcore.events.truncated_batch", "TruncatedBatchEvent"),
    "truncated_laplace": ("dpcore.mechanisms.truncated_laplace", "TruncatedLaplaceEvent"),
    "without_replacement": ("dpcore.events.without_replacement", "WithoutReplacementEvent"),
    "zcdp": ("dpcore.events.concentrated", "ZcdpEvent"),
}
"""By which name each event of the core goes, and where its class is: the names are a format."""


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """Conversions between adjacencies, and the bound of sums."""
    return LazyMapping(
        {
            "sum": ("dpcore.learning.bounds.sum", "SumBound"),
            "twice_add_remove": ("dpcore.learning.bounds.twice_add_remove", "TwiceAddRemove"),
        }
    )


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[AnyMechanism]]:
    """The core's mechanisms, by the bare name that a spec gives."""
    return LazyMapping(
        {
            "discrete_gaussian": ("dpcore.mechanisms.discrete_gaussian", "DiscreteGaussian"),
            "discrete_laplace": ("dpcore.mechanisms.discrete_laplace", "DiscreteLaplace"),
            "exponential": ("dpcore.mechanisms.exponential", "Exponential"),
            "gaussian": ("dpcore.mechanisms.gaussian", "Gaussian"),
            "l2_gamma": ("dpcore.mechanisms.l2_gamma", "L2Gamma"),
            "laplace": ("dpcore.mechanisms.laplace", "Laplace"),
            "permute_and_flip": ("dpcore.mechanisms.permute_and_flip", "PermuteAndFlip"),
            "randomized_response": ("dpcore.mechanisms.randomized_response", "RandomizedResponse"),
            "truncated_laplace": ("dpcore.mechanisms.truncated_laplace", "TruncatedLaplace"),
        }
    )


@hookimpl
def dpcore_accountants() -> Mapping[str, type[Accountant]]:
    """The core's accountants, by the bare name that a spec gives."""
    return LazyMapping(
        {
            "auto": ("dpcore.accounting.methods.auto", "AutoAccountant"),
            "basic": ("dpcore.accounting.methods.basic", "BasicAccountant"),
            "gdp": ("dpcore.accounting.methods.gdp", "GdpAccountant"),
            "homogeneous": ("dpcore.accounting.methods.homogeneous", "HomogeneousAccountant"),
            "pld": ("dpcore.accounting.methods.pld", "PldAccountant"),
            "renyi": ("dpcore.accounting.methods.renyi", "RenyiAccountant"),
            "zcdp": ("dpcore.accounting.methods.zcdp", "ZcdpAccountant"),
        }
    )


@hookimpl
def dpcore_features() -> Mapping[str, type[FeatureMap]]:
    """The core's feature maps, by the bare name that a spec gives."""
    return LazyMapping(
        {
            "identity": ("dpcore.learning.features.identity", "Identity"),
        }
    )


@hookimpl
def dpcore_events() -> Mapping[str, type[Event]]:
    """The core's events, by the bare name that files of events and ledgers give."""
    return LazyMapping(HOMES)


@hookimpl
def dpcore_kernels() -> Mapping[str, type[Kernel]]:
    """The core's kernels, by the bare name that a spec gives."""
    return LazyMapping(
        {
            "gaussian": ("dpcore.functions.kernels.gaussian", "GaussianKernel"),
            "linear": ("dpcore.functions.kernels.linear", "LinearKernel"),
        }
    )


@hookimpl
def dpcore_sources() -> Mapping[str, type[Location]]:
    """The core's kinds of source, by the bare name that a spec gives."""
    return LazyMapping(
        {
            "csv": ("dpcore.sources.csv_file", "CsvFile"),
            "parquet": ("dpcore.sources.parquet", "ParquetFiles"),
            "sklearn": ("dpcore.sources.sklearn_data", "SklearnData"),
            "sql": ("dpcore.sources.sql", "SqlQuery"),
        }
    )


@hookimpl
def dpcore_engines() -> Mapping[str, type[EngineChoice]]:
    """The core's engines, by the bare name that an operator gives."""
    return LazyMapping(
        {
            "local": ("dpcore.engines.choice", "Local"),
        }
    )


@hookimpl
def dpcore_metrics() -> Mapping[str, type[Metric]]:
    """The core's metrics, by the bare name that a spec gives."""
    means = "dpcore.learning.metrics.means"
    return LazyMapping(
        {
            "accuracy": (means, "Accuracy"),
            "mae": (means, "MeanAbsoluteError"),
            "mse": (means, "MeanSquaredError"),
            "rmse": (means, "RootMeanSquaredError"),
        }
    )


@hookimpl
def dpcore_commands() -> Mapping[str, click.Command]:
    """The commands of the core: what a run, its replay, its ledger and its plugins need."""
    # From the one table that help prints too, so that no command is missing in either.
    from dpcore.registry.commands import COMMANDS

    homes = {name: home.split(":") for name, (home, _) in COMMANDS.items()}
    return LazyMapping({name: (f"dpcore.cli.{file}", word) for name, (file, word) in homes.items()})
