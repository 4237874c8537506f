"""Events: all an accountant may know of a release, one privacy curve per file."""

from collections.abc import Mapping

HOMES: Mapping[str, tuple[str, str]] = {
    "approximate": ("dpcore.events.randomized_response", "ApproximateEvent"),
    "composed": ("dpcore.events.composition", "ComposedEvent"),
    "curve": ("dpcore.events.renyi_curve", "CurveEvent"),
    "discrete_gaussian": ("dpcore.events.discrete_gaussian", "DiscreteGaussianEvent"),
    "discrete_laplace": ("dpcore.events.discrete_laplace", "DiscreteLaplaceEvent"),
    "exponential_mechanism": ("dpcore.events.exponential", "ExponentialMechanismEvent"),
    "gaussian": ("dpcore.events.gaussian", "GaussianEvent"),
    "gaussian_mixture": ("dpcore.events.gaussian_mixture", "GaussianMixtureEvent"),
    "gaussian_sampling": ("dpcore.events.gaussian_sampling", "GaussianSamplingEvent"),
    "hit_mixture": ("dpcore.events.hit_mixture", "HitMixtureEvent"),
    "l2_gamma": ("dpcore.events.l2_gamma", "L2GammaEvent"),
    "laplace": ("dpcore.events.laplace", "LaplaceEvent"),
    "poisson_replaced": ("dpcore.events.poisson_replaced", "PoissonReplacedEvent"),
    "poisson_sampled": ("dpcore.events.poisson", "PoissonSampledEvent"),
    "pure": ("dpcore.events.randomized_response", "PureEvent"),
    "random_stopping": ("dpcore.events.random_stopping", "RandomStoppingEvent"),
    "randomized_response": ("dpcore.events.randomized_response", "RandomizedResponseEvent"),
    "renyi": ("dpcore.events.renyi_curve", "RenyiEvent"),
    "truncated_batch": ("dpcore.events.truncated_batch", "TruncatedBatchEvent"),
    "truncated_laplace": ("dpcore.events.truncated_laplace", "TruncatedLaplaceEvent"),
    "without_replacement": ("dpcore.events.without_replacement", "WithoutReplacementEvent"),
    "zcdp": ("dpcore.events.concentrated", "ZcdpEvent"),
}
"""By which name each event of the core goes, and where its class is: the names are a format."""
