"""OpenDP's Gaussian noise as a mechanism. No paper: the claim is OpenDP's privacy map."""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Mechanism, hookimpl
from opendp_noise.gaussian import OpenDPGaussian


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Gaussian noise."""
    return {"opendp_noise.gaussian": OpenDPGaussian}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec that uses it."""
    return {"costs": Path(__file__).with_name("example.yaml")}
