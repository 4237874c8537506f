"""`builtin`: the core's own components, in the table that any plugin may give.

They are named here and imported when they are asked for.
"""

from dpcore.registry.commands import COMMANDS

provides = {
    # Conversions between adjacencies, and the bound of sums.
    "bounds": {
        "sum": "dpcore.learners.bounds.sum:SumBound",
        "twice_add_remove": "dpcore.learners.bounds.twice_add_remove:TwiceAddRemove",
    },
    "mechanisms": {
        "discrete_gaussian": "dpcore.claims.mechanisms.discrete_gaussian:DiscreteGaussian",
        "discrete_laplace": "dpcore.claims.mechanisms.discrete_laplace:DiscreteLaplace",
        "exponential": "dpcore.claims.mechanisms.exponential:Exponential",
        "gaussian": "dpcore.claims.mechanisms.gaussian:Gaussian",
        "l2_gamma": "dpcore.claims.mechanisms.l2_gamma:L2Gamma",
        "laplace": "dpcore.claims.mechanisms.laplace:Laplace",
        "permute_and_flip": "dpcore.claims.mechanisms.permute_and_flip:PermuteAndFlip",
        "randomized_response": "dpcore.claims.mechanisms.randomized_response:RandomizedResponse",
        "truncated_laplace": "dpcore.claims.mechanisms.truncated_laplace:TruncatedLaplace",
    },
    "accountants": {
        "auto": "dpcore.claims.accounting.methods.auto:AutoAccountant",
        "basic": "dpcore.claims.accounting.methods.basic:BasicAccountant",
        "gdp": "dpcore.claims.accounting.methods.gdp:GdpAccountant",
        "homogeneous": "dpcore.claims.accounting.methods.homogeneous:HomogeneousAccountant",
        "pld": "dpcore.claims.accounting.methods.pld:PldAccountant",
        "renyi": "dpcore.claims.accounting.methods.renyi:RenyiAccountant",
        "zcdp": "dpcore.claims.accounting.methods.renyi:ZcdpAccountant",
    },
    "features": {"identity": "dpcore.models.features.identity:Identity"},
    # The names are a format: files of events and ledgers hold them.
    "events": {
        "approximate": "dpcore.claims.events.randomized_response:ApproximateEvent",
        "composed": "dpcore.claims.events.composition:ComposedEvent",
        "curve": "dpcore.claims.events.renyi_curve:CurveEvent",
        "discrete_gaussian": "dpcore.claims.mechanisms.discrete_gaussian:DiscreteGaussianEvent",
        "discrete_laplace": "dpcore.claims.mechanisms.discrete_laplace:DiscreteLaplaceEvent",
        "exponential_mechanism": "dpcore.claims.events.exponential:ExponentialMechanismEvent",
        "gaussian": "dpcore.claims.events.gaussian:GaussianEvent",
        "gaussian_mixture": "dpcore.claims.events.gaussian_mixture:GaussianMixtureEvent",
        "gaussian_sampling": "dpcore.claims.events.gaussian_sampling:GaussianSamplingEvent",
        "hit_mixture": "dpcore.claims.events.hit_mixture:HitMixtureEvent",
        "l2_gamma": "dpcore.claims.mechanisms.l2_gamma:L2GammaEvent",
        "laplace": "dpcore.claims.events.laplace:LaplaceEvent",
        "poisson_replaced": "dpcore.claims.events.poisson_replaced:PoissonReplacedEvent",
        "poisson_sampled": "dpcore.claims.events.poisson:PoissonSampledEvent",
        "pure": "dpcore.claims.events.randomized_response:PureEvent",
        "random_stopping": "dpcore.claims.events.random_stopping:RandomStoppingEvent",
        "randomized_response": "dpcore.claims.events.randomized_response:RandomizedResponseEvent",
        "renyi": "dpcore.claims.events.renyi_curve:RenyiEvent",
        "truncated_batch": "dpcore.claims.events.truncated_batch:TruncatedBatchEvent",
        "truncated_laplace": "dpcore.claims.mechanisms.truncated_laplace:TruncatedLaplaceEvent",
        "without_replacement": "dpcore.claims.events.without_replacement:WithoutReplacementEvent",
        "zcdp": "dpcore.claims.events.concentrated:ZcdpEvent",
    },
    "kernels": {
        "gaussian": "dpcore.functions.kernels.gaussian:GaussianKernel",
        "linear": "dpcore.functions.kernels.linear:LinearKernel",
    },
    "sources": {
        "csv": "dpcore.sources.opening:CsvFile",
        "parquet": "dpcore.sources.parquet:ParquetFiles",
        "sklearn": "dpcore.sources.sklearn_data:SklearnData",
        "sql": "dpcore.sources.sql:SqlQuery",
    },
    "engines": {"local": "dpcore.private.engines.choice:Local"},
    "metrics": {
        "accuracy": "dpcore.metrics.means:Accuracy",
        "mae": "dpcore.metrics.means:MeanAbsoluteError",
        "mse": "dpcore.metrics.means:MeanSquaredError",
        "rmse": "dpcore.metrics.means:RootMeanSquaredError",
    },
    # From the one table that help prints too, so that no command is missing in either.
    "commands": {name: f"dpcore.console.{home}" for name, (home, _) in COMMANDS.items()},
}
