"""What reported and mutated components take from the inside of dpcore, and how the conformance
suite is called.

Whatever dpcore exports is imported from there. When a module moves, this file is the one to edit.
"""

import dpcore_kernel_ridge
import dpcore_models
import dpcore_ntk
from dpcore import Registry
from dpcore.accountant import UnsupportedEventError
from dpcore.checks import positive
from dpcore.claims.accounting.methods.basic import BasicAccountant
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.accounting.methods.homogeneous import HomogeneousAccountant
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.accounting.methods.renyi import RenyiAccountant, ZcdpAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import PureEvent, RandomizedResponseEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.l2_gamma import L2Gamma
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplace
from dpcore.claims.sampling import amplify
from dpcore.errors import NoClaimError
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.mechanism import coordinates, free, from_real
from dpcore.models.features.identity import Identity
from dpcore.private.sampling import draw, draw_with
from dpcore.registry.kinds import BOUND, LEARNER
from dpcore.sampling import Sampling
from dpcore.specs.spec import load_spec
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine
from dpcore_attacks.laws.mechanisms.mechanisms import mechanism_cases
from dpcore_attacks.laws.oracles.interactive import interactive_cases
from dpcore_kernel_ridge.bounds import KernelRidgeReplaceOne
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.per_query import PerQuery
from dpcore_kernel_ridge.ridge import KernelRidge
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound
from dpcore_linear.output_perturbation import OutputPerturbation, OutputPerturbationBound
from dpcore_linear.sufficient_statistics import SufficientStatistics, SufficientStatisticsBound
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.features.cosines import Cosines
from dpcore_models.theorems.ridge import ridge_replace_one
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_random_features.ball_ridge import BallRidgeBound, BallRidgeLearner
from dpcore_random_features.projected_min_norm import ProjectedMinNorm, ProjectedMinNormBound
from dpcore_random_features.ridge import Ridge, RidgeReplaceOne

__all__ = [
    "BOUND",
    "LEARNER",
    "Affine",
    "BallRidgeBound",
    "BallRidgeLearner",
    "BasicAccountant",
    "ClippedGradient",
    "ClippedGradientBound",
    "CosSin",
    "Cosines",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "GaussianEvent",
    "GaussianKernel",
    "GaussianProcess",
    "GaussianSampling",
    "GdpAccountant",
    "HomogeneousAccountant",
    "Identity",
    "KernelRidge",
    "KernelRidgeReplaceOne",
    "L2Gamma",
    "Laplace",
    "LaplaceEvent",
    "NoClaimError",
    "OutputPerturbation",
    "OutputPerturbationBound",
    "PerQuery",
    "PermuteAndFlip",
    "PldAccountant",
    "PoissonSampledEvent",
    "ProjectedMinNorm",
    "ProjectedMinNormBound",
    "PureEvent",
    "RandomizedResponse",
    "RandomizedResponseEvent",
    "RenyiAccountant",
    "Ridge",
    "RidgeReplaceOne",
    "Sampling",
    "SufficientStatistics",
    "SufficientStatisticsBound",
    "TruncatedLaplace",
    "UnsupportedEventError",
    "ZcdpAccountant",
    "amplify",
    "coordinates",
    "draw",
    "draw_with",
    "examined",
    "free",
    "from_real",
    "interactive_cases",
    "load_spec",
    "mechanism_cases",
    "positive",
    "registry_of",
    "ridge_replace_one",
]


def registry_of(module):
    """The core, a module, and the plugins whose components examples of the gallery name."""
    return Registry.of(module, dpcore_kernel_ridge, dpcore_models, dpcore_ntk)


def examined(module, effort=1.0, seed=0, **options):
    """The conformance suite's report on one plugin module; an effort of 1 is what the conformance
    suite does by default.
    """
    return examine(module.__name__, registry_of(module), Effort().times(effort), seed, **options)
