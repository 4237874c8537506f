"""`builtin`: the core's own components, in the table that any plugin may give.

They are named here and imported when they are asked for.
"""

from dpcore.registry.commands import COMMANDS

provides = {
    # Conversions between adjacencies, and the bound of sums.
    "bounds": {
        "sum": "dpcore.learning.bounds.sum:SumBound",
        "twice_add_remove": "dpcore.learning.bounds.twice_add_remove:TwiceAddRemove",
    },
    "mechanisms": {
        "discrete_gaussian": "dpcore.mechanisms.discrete_gaussian:DiscreteGaussian",
        "discrete_laplace": "dpcore.mechanisms.discrete_laplace:DiscreteLaplace",
        "exponential": "dpcore.mechanisms.exponential:Exponential",
        "gaussian": "dpcore.mechanisms.gaussian:Gaussian",
        "l2_gamma": "dpcore.mechanisms.l2_gamma:L2Gamma",
        "laplace": "dpcore.mechanisms.laplace:Laplace",
        "permute_and_flip": "dpcore.mechanisms.permute_and_flip:PermuteAndFlip",
        "randomized_response": "dpcore.mechanisms.randomized_response:RandomizedResponse",
        "truncated_laplace": "dpcore.mechanisms.truncated_laplace:TruncatedLaplace",
    },
    "accountants": {
        "auto": "dpcore.accounting.methods.auto:AutoAccountant",
        "basic": "dpcore.accounting.methods.basic:BasicAccountant",
        "gdp": "dpcore.accounting.methods.gdp:GdpAccountant",
        "homogeneous": "dpcore.accounting.methods.homogeneous:HomogeneousAccountant",
        "pld": "dpcore.accounting.methods.pld:PldAccountant",
        "renyi": "dpcore.accounting.methods.renyi:RenyiAccountant",
        "zcdp": "dpcore.accounting.methods.zcdp:ZcdpAccountant",
    },
    "features": {"identity": "dpcore.learning.features.identity:Identity"},
    # The names are a format: files of events and ledgers hold them.
    "events": {
        "approximate": "dpcore.events.randomized_response:ApproximateEvent",
        "composed": "dpcore.events.composition:ComposedEvent",
        "curve": "dpcore.events.renyi_curve:CurveEvent",
        "discrete_gaussian": "dpcore.mechanisms.discrete_gaussian:DiscreteGaussianEvent",
        "discrete_laplace": "dpcore.mechanisms.discrete_laplace:DiscreteLaplaceEvent",
        "exponential_mechanism": "dpcore.events.exponential:ExponentialMechanismEvent",
        "gaussian": "dpcore.events.gaussian:GaussianEvent",
        "gaussian_mixture": "dpcore.events.gaussian_mixture:GaussianMixtureEvent",
        "gaussian_sampling": "dpcore.events.gaussian_sampling:GaussianSamplingEvent",
        "hit_mixture": "dpcore.events.hit_mixture:HitMixtureEvent",
        "l2_gamma": "dpcore.mechanisms.l2_gamma:L2GammaEvent",
        "laplace": "dpcore.events.laplace:LaplaceEvent",
        "poisson_replaced": "dpcore.events.poisson_replaced:PoissonReplacedEvent",
        "poisson_sampled": "dpcore.events.poisson:PoissonSampledEvent",
        "pure": "dpcore.events.randomized_response:PureEvent",
        "random_stopping": "dpcore.events.random_stopping:RandomStoppingEvent",
        "randomized_response": "dpcore.events.randomized_response:RandomizedResponseEvent",
        "renyi": "dpcore.events.renyi_curve:RenyiEvent",
        "truncated_batch": "dpcore.events.truncated_batch:TruncatedBatchEvent",
        "truncated_laplace": "dpcore.mechanisms.truncated_laplace:TruncatedLaplaceEvent",
        "without_replacement": "dpcore.events.without_replacement:WithoutReplacementEvent",
        "zcdp": "dpcore.events.concentrated:ZcdpEvent",
    },
    "kernels": {
        "gaussian": "dpcore.functions.kernels.gaussian:GaussianKernel",
        "linear": "dpcore.functions.kernels.linear:LinearKernel",
    },
    "sources": {
        "csv": "dpcore.sources.csv_file:CsvFile",
        "parquet": "dpcore.sources.parquet:ParquetFiles",
        "sklearn": "dpcore.sources.sklearn_data:SklearnData",
        "sql": "dpcore.sources.sql:SqlQuery",
    },
    "engines": {"local": "dpcore.engines.choice:Local"},
    "metrics": {
        "accuracy": "dpcore.learning.metrics.means:Accuracy",
        "mae": "dpcore.learning.metrics.means:MeanAbsoluteError",
        "mse": "dpcore.learning.metrics.means:MeanSquaredError",
        "rmse": "dpcore.learning.metrics.means:RootMeanSquaredError",
    },
    # From the one table that help prints too, so that no command is missing in either.
    "commands": {name: f"dpcore.cli.{home}" for name, (home, _) in COMMANDS.items()},
}
