"""The core's own components, registered through the same hooks as any plugin's."""

from collections.abc import Mapping

from dpcore.accountant import Accountant
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.accounting.methods.basic import BasicAccountant
from dpcore.accounting.methods.gdp import GdpAccountant
from dpcore.accounting.methods.homogeneous import HomogeneousAccountant
from dpcore.accounting.methods.pld import PldAccountant
from dpcore.accounting.methods.renyi import RenyiAccountant
from dpcore.accounting.methods.zcdp import ZcdpAccountant
from dpcore.bound import SensitivityBound
from dpcore.events.base import Event
from dpcore.events.catalogue import CORE
from dpcore.functions.kernels.base import Kernel
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.functions.kernels.matern import (
    ExponentialKernel,
    Matern32Kernel,
    Matern52Kernel,
)
from dpcore.learner import AnyLearner
from dpcore.learning.bounds.best_of import BestOfBound
from dpcore.learning.bounds.sum import SumBound
from dpcore.learning.bounds.twice_add_remove import TwiceAddRemove
from dpcore.learning.features.base import FeatureMap
from dpcore.learning.features.cos_sin import CosSin
from dpcore.learning.features.cosines import Cosines
from dpcore.learning.features.identity import Identity
from dpcore.learning.learners.best_of import BestOf
from dpcore.mechanism import AnyMechanism
from dpcore.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.mechanisms.gaussian_process import GaussianProcess
from dpcore.mechanisms.gaussian_sampling import GaussianSampling
from dpcore.mechanisms.l2_gamma import L2Gamma
from dpcore.mechanisms.laplace import Laplace
from dpcore.mechanisms.per_query import PerQuery
from dpcore.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.mechanisms.randomized_response import RandomizedResponse
from dpcore.mechanisms.truncated_laplace import TruncatedLaplace
from dpcore.registry.hookspecs import hookimpl


@hookimpl
def dpcore_learners() -> Mapping[str, type[AnyLearner]]:
    """Learners made of other learners."""
    return {"best_of": BestOf}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """Conversions between adjacencies, and the bounds of learners made of others."""
    return {"best_of": BestOfBound, "sum": SumBound, "twice_add_remove": TwiceAddRemove}


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[AnyMechanism]]:
    """Mechanisms with bare names."""
    return {
        "discrete_gaussian": DiscreteGaussian,
        "discrete_laplace": DiscreteLaplace,
        "gaussian": Gaussian,
        "gaussian_process": GaussianProcess,
        "gaussian_sampling": GaussianSampling,
        "l2_gamma": L2Gamma,
        "laplace": Laplace,
        "per_query": PerQuery,
        "permute_and_flip": PermuteAndFlip,
        "randomized_response": RandomizedResponse,
        "truncated_laplace": TruncatedLaplace,
    }


@hookimpl
def dpcore_accountants() -> Mapping[str, type[Accountant]]:
    """Accountants with bare names."""
    return {
        "auto": AutoAccountant,
        "basic": BasicAccountant,
        "gdp": GdpAccountant,
        "homogeneous": HomogeneousAccountant,
        "pld": PldAccountant,
        "renyi": RenyiAccountant,
        "zcdp": ZcdpAccountant,
    }


@hookimpl
def dpcore_features() -> Mapping[str, type[FeatureMap]]:
    """Feature maps with bare names."""
    return {"cos_sin": CosSin, "cosines": Cosines, "identity": Identity}


@hookimpl
def dpcore_events() -> Mapping[str, type[Event]]:
    """Events with bare names."""
    return CORE


@hookimpl
def dpcore_kernels() -> Mapping[str, type[Kernel]]:
    """Kernels with bare names."""
    return {
        "exponential": ExponentialKernel,
        "gaussian": GaussianKernel,
        "linear": LinearKernel,
        "matern_3_2": Matern32Kernel,
        "matern_5_2": Matern52Kernel,
    }
