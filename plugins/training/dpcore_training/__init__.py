"""Private training: gradient steps on exact sums of clipped gradients, of any differentiable model.

After Abadi et al. (2016), Deep learning with differential privacy, arXiv:1607.00133, with integer
rows whose length is checked, exact noise and public divisors. `training.network` needs no code; a
plugin of one's own brings another model as a `JaxNetwork`.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore.records.location import Location
from dpcore.registry.lazy_mapping import LazyMapping
from dpcore_training.dense import DenseNetwork
from dpcore_training.program_bound import ProgramBound


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Linear models and networks of rectified units."""
    return {"training.network": DenseNetwork}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record moves, with the program that computes gradients among its premises."""
    return {"training.program": ProgramBound}


@hookimpl
def dpcore_sources() -> Mapping[str, type[Location]]:
    """Images as arrays and as lists, by the key that a spec names them with."""
    return LazyMapping(
        {
            "image_lists": ("dpcore_training.images", "ImageLists"),
            "npy": ("dpcore_training.images", "ArrayFiles"),
        }
    )


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """A linear model of ten classes of digits."""
    return {"training.digits": Path(__file__).parent / "examples" / "digits.yaml"}
