"""Private random feature models: after Liao, Needell, Schaeffer & Xue (2025).

Differentially private random feature model; the sound forms rest on T1 and T3-T6 of the docs.
"""

provides = {
    # Learners of the paper, in sound form and (`min_norm`) as printed.
    "learners": {
        "random_features.ball_ridge": "dpcore_random_features.ball_ridge:BallRidgeLearner",
        "random_features.huber_ridge": "dpcore_random_features.huber_ridge:HuberRidgeLearner",
        "random_features.min_norm": "dpcore_random_features.min_norm:MinNorm",
        "random_features.projected_min_norm": (
            "dpcore_random_features.projected_min_norm:ProjectedMinNorm"
        ),
        "random_features.ridge": "dpcore_random_features.ridge:Ridge",
    },
    "bounds": {
        "random_features.algorithm_1": "dpcore_random_features.min_norm:Algorithm1",
        "random_features.ball_ridge": "dpcore_random_features.ball_ridge:BallRidgeBound",
        "random_features.huber_ridge": "dpcore_random_features.huber_ridge:HuberRidgeBound",
        "random_features.liao_lemma_9": "dpcore_random_features.min_norm:LiaoLemma9",
        "random_features.projected_min_norm": (
            "dpcore_random_features.projected_min_norm:ProjectedMinNormBound"
        ),
        "random_features.published_code": "dpcore_random_features.min_norm:PublishedCode",
        "random_features.ridge_replace_one": "dpcore_random_features.ridge:RidgeReplaceOne",
    },
    # Algorithm 1's noise, as printed.
    "mechanisms": {"random_features.real_noise": "dpcore_random_features.real_noise:RealNoise"},
    # A spec for each sound learner; what is printed runs under `dpcore reproduce` only.
    "examples": {"random_features.*": "examples/*.yaml"},
    # Tables 1 and 2 and Figures 1-8, as the published code runs them, where there is one.
    "experiments": {"random_features/*": "experiments/*.yaml"},
    "methods": {
        "random_features.f1": "dpcore_random_features.experiment_methods:f1",
        "random_features.f2": "dpcore_random_features.experiment_methods:f2",
        "random_features.fit_cosines": "dpcore_random_features.experiment_methods:fit_cosines",
        "random_features.fit_ridge": "dpcore_random_features.experiment_groups:fit_ridge",
        "random_features.algorithm_noise": (
            "dpcore_random_features.experiment_noises:ALGORITHM_NOISE"
        ),
        "random_features.classical_noise": (
            "dpcore_random_features.experiment_noises:ALGORITHM_NOISE"
        ),
        "random_features.gamma_noise": "dpcore_random_features.experiment_noises:GAMMA_NOISE",
        "random_features.gap_noise": "dpcore_random_features.experiment_noises:GAP_NOISE",
    },
    "theory": "dpcore_random_features.statements:STATEMENTS",
    "estimators": {"RandomFeaturesRidge": "dpcore_random_features.estimators:RandomFeaturesRidge"},
}
