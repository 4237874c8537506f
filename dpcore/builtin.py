"""The core's own components, registered through the same hooks as any plugin's."""

from collections.abc import Mapping

from dpcore.accountant import Accountant
from dpcore.accountants.auto import AutoAccountant
from dpcore.accountants.basic import BasicAccountant
from dpcore.accountants.gdp import GdpAccountant
from dpcore.bounds.twice_add_remove import TwiceAddRemove
from dpcore.features.base import FeatureMap
from dpcore.features.cos_sin import CosSin
from dpcore.features.cosines import Cosines
from dpcore.features.identity import Identity
from dpcore.hookspecs import hookimpl
from dpcore.mechanism import Mechanism
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.mechanisms.laplace import Laplace
from dpcore.sensitivity import SensitivityBound


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """Conversions between adjacencies."""
    return {"twice_add_remove": TwiceAddRemove}


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Mechanisms with bare names."""
    return {"gaussian": Gaussian, "laplace": Laplace}


@hookimpl
def dpcore_accountants() -> Mapping[str, type[Accountant]]:
    """Accountants with bare names."""
    return {"auto": AutoAccountant, "basic": BasicAccountant, "gdp": GdpAccountant}


@hookimpl
def dpcore_features() -> Mapping[str, type[FeatureMap]]:
    """Feature maps with bare names."""
    return {"cos_sin": CosSin, "cosines": Cosines, "identity": Identity}
