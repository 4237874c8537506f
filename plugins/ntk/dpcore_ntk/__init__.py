"""Private regression with a neural tangent kernel: after Gu, Liang, Sha, Shi & Song (2024).

Differential Privacy Mechanisms in Neural Tangent Kernel Regression: as printed, made sound, and a
central route that protects whole records.
"""

provides = {
    # The learners of this plugin: the central one is recommended.
    "learners": {
        "ntk.central": "dpcore_ntk.central:Central",
        "ntk.printed": "dpcore_ntk.printed:Printed",
        "ntk.regression": "dpcore_ntk.regression:Regression",
    },
    # What one record can move; what the paper promises, and what it prints.
    "bounds": {
        "ntk.central": "dpcore_ntk.central:CentralBound",
        "ntk.equation_1": "dpcore_ntk.printed:Equation1Bound",
        "ntk.eta_min": "dpcore_ntk.printed:PromisedBound",
        "ntk.regression": "dpcore_ntk.regression:RegressionBound",
    },
    # Gaussian sampling made sound, and as printed, private under a promise only.
    # Specs name the sound one without a dot, as they did when it was the core's.
    "mechanisms": {
        "gaussian_sampling": "dpcore_ntk.gaussian_sampling:GaussianSampling",
        "ntk.gram_sampling": "dpcore_ntk.gram_sampling:GramSampling",
    },
    # The smallest spec of each; `equation_1` runs under `dpcore reproduce` only.
    "examples": {"ntk.*": "examples/*.yaml"},
    "theory": "dpcore_ntk.statements:STATEMENTS",
    # What represents Figure 1.
    "experiments": {"ntk/*": "experiments/*.yaml"},
    "methods": {
        "ntk.digits": "dpcore_ntk.experiment_methods:digits",
        "ntk.fit_kernel": "dpcore_ntk.experiment_methods:fit_kernel",
    },
    "estimators": {"NTKClassifier": "dpcore_ntk.estimators:NTKClassifier"},
}
