"""Private kernel ridge regression: after Nie & Wang (2017).

Error Analysis and Variable Selection for Differential Private Learning Algorithm; the sound forms
rest on T3, T4, T6, T10 and T11 of the docs.
"""

provides = {
    # Functions: with the exact number of records, and without it.
    "learners": {
        "kernel_ridge.huber_ridge": "dpcore_kernel_ridge.huber_ridge:KernelHuberRidge",
        "kernel_ridge.ridge": "dpcore_kernel_ridge.ridge:KernelRidge",
    },
    # What one record can move, and what the paper prints.
    "bounds": {
        "kernel_ridge.huber_ridge": "dpcore_kernel_ridge.huber_ridge:KernelHuberRidgeBound",
        "kernel_ridge.lemma_2": "dpcore_kernel_ridge.bounds:Lemma2",
        "kernel_ridge.proposition_1": "dpcore_kernel_ridge.bounds:Proposition1",
        "kernel_ridge.replace_one": "dpcore_kernel_ridge.bounds:KernelRidgeReplaceOne",
    },
    # Answers about a private function: two sound releases, and one as the paper prints it.
    # Specs name the sound ones without a dot, as they did when these were the core's.
    "mechanisms": {
        "gaussian_process": "dpcore_kernel_ridge.gaussian_process:GaussianProcess",
        "kernel_ridge.one_scalar": "dpcore_kernel_ridge.one_scalar:OneScalar",
        "per_query": "dpcore_kernel_ridge.per_query:PerQuery",
    },
    # Kernels that are rougher than the core's Gaussian one; specs name them without a dot.
    "kernels": {
        "exponential": "dpcore_kernel_ridge.matern:ExponentialKernel",
        "matern_3_2": "dpcore_kernel_ridge.matern:Matern32Kernel",
        "matern_5_2": "dpcore_kernel_ridge.matern:Matern52Kernel",
    },
    # The smallest spec of each release; `printed` runs under `dpcore reproduce` only.
    "examples": {"kernel_ridge.*": "examples/*.yaml"},
    "theory": "dpcore_kernel_ridge.statements:STATEMENTS",
    # The paper's constants: it has no experiments.
    "experiments": {"kernel_ridge/*": "experiments/*.yaml"},
    "estimators": {"KernelRidge": "dpcore_kernel_ridge.estimators:KernelRidge"},
}
