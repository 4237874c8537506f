"""Objective perturbation for linear and logistic models, after three papers.

After Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12:1069-1109, and Kifer, Smith & Thakurta (2012),
COLT; features after Lee, Park & Ahn (2025), arXiv:2507.17544.
"""

provides = {
    "learners": {
        "objective_perturbation.regression": "dpcore_objective_perturbation.regression:Regression",
    },
    # What a minimiser moves by where a record changes.
    "bounds": {
        "objective_perturbation.regression": (
            "dpcore_objective_perturbation.regression:RegressionBound"
        ),
    },
    # The linear term, and the noise on the minimiser.
    "mechanisms": {
        "objective_perturbation.normal": (
            "dpcore_objective_perturbation.mechanism:ObjectivePerturbation"
        ),
    },
    # The curve of the exact minimiser.
    "events": {
        "objective_perturbation": "dpcore_objective_perturbation.event:ObjectivePerturbationEvent",
    },
    # Random combinations of another map's features.
    "features": {
        "objective_perturbation.random_projection": (
            "dpcore_objective_perturbation.projection:RandomProjection"
        ),
    },
    # Regression of numbers, of classes, and on projected features.
    "examples": {"objective_perturbation.*": "examples/*.yaml"},
    "theory": "dpcore_objective_perturbation.statements:STATEMENTS",
}
