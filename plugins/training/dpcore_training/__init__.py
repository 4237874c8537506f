"""Private training: gradient steps on exact sums of clipped gradients, of any differentiable model.

After Abadi et al. (2016), Deep learning with differential privacy, arXiv:1607.00133, with integer
rows whose length is checked, exact noise and public divisors. `training.network` needs no code; a
plugin of one's own brings another model as a `JaxNetwork`.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, Mechanism, SensitivityBound, hookimpl
from dpcore.records.location import Location
from dpcore.registry.lazy_mapping import LazyMapping
from dpcore_training.best_run import BestRun, BestRunBound
from dpcore_training.dense import DenseNetwork
from dpcore_training.program_bound import ProgramBound
from dpcore_training.random_stopping import RandomStopping

_EXAMPLES = {"training.best_run": "best_run.yaml", "training.digits": "digits.yaml"}


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Linear models and networks of rectified units, and the best of a random number of runs."""
    return {"training.best_run": BestRun, "training.network": DenseNetwork}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record moves, with what computes gradients and what scores runs as premises."""
    return {"training.best_run": BestRunBound, "training.program": ProgramBound}


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Runs that a coin ends."""
    return {"training.random_stopping": RandomStopping}


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
    """Linear models of ten classes of digits, one of them chosen among rates."""
    folder = Path(__file__).parent / "examples"
    return {name: folder / file for name, file in _EXAMPLES.items()}
