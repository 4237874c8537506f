"""Private training: gradient steps on exact sums of clipped gradients, of any differentiable model.

After Abadi et al. (2016), Deep learning with differential privacy, arXiv:1607.00133, with integer
rows whose length is checked, exact noise and public divisors. `training.network` needs no code; a
plugin of one's own brings another model as a `JaxNetwork`.
"""

provides = {
    # Linear models and networks of rectified units, and the best of a random number of runs.
    "learners": {
        "training.best_run": "dpcore_training.best_run:BestRun",
        "training.network": "dpcore_training.dense:DenseNetwork",
    },
    # What one record moves, with what computes gradients and what scores runs as premises.
    "bounds": {
        "training.best_run": "dpcore_training.best_run:BestRunBound",
        "training.program": "dpcore_training.program_bound:ProgramBound",
    },
    "mechanisms": {"training.random_stopping": "dpcore_training.random_stopping:RandomStopping"},
    "sources": {
        "image_lists": "dpcore_training.images:ImageLists",
        "npy": "dpcore_training.images:ArrayFiles",
    },
    # Linear models of ten classes of digits, one of them chosen among rates.
    "examples": {"training.*": "examples/*.yaml"},
}
