"""Private stochastic gradient descent on features: output perturbation, and correlated noise.

After Wang & Guo (2024), Differentially private SGD with random features, Appl. Math. J. Chinese
Univ. 39, doi:10.1007/s11766-024-5037-0: the algorithm as printed, corrected, and in sound forms.
"""

provides = {
    # Output perturbation, and steps with correlated noise; what varies is a field.
    "learners": {
        "sgd.banded": "dpcore_sgd.banded:Banded",
        "sgd.regression": "dpcore_sgd.regression:Regression",
    },
    "bounds": {
        "sgd.corrected": "dpcore_sgd.printed:CorrectedTheorem2",
        "sgd.passes": "dpcore_sgd.bounds:PassesBound",
        "sgd.path": "dpcore_sgd.bounds:PathBound",
        "sgd.printed": "dpcore_sgd.printed:PrintedTheorem2",
    },
    # The recommended form, each order, and the paper: printed under `dpcore reproduce` only.
    "examples": {"sgd.*": "examples/*.yaml"},
    # The noise as printed, for experiments of others that compare with it.
    "methods": {"sgd.theorem_3_noise": "dpcore_sgd.experiment_methods:THEOREM_3_NOISE"},
    "theory": "dpcore_sgd.statements:STATEMENTS",
    # The paper's constants: it has no experiments.
    "experiments": {"sgd/*": "experiments/*.yaml"},
}
