"""Shifted interpolation: what the last iterate of noisy gradient descent costs.

After Bok, Su & Altschuler (2024), Shifted interpolation for differential privacy, arXiv:2403.00278,
read in the authors' public code: calculators, and descent whose last iterate by itself is released.
"""

provides = {
    # Descent with noise inside, for researchers.
    "learners": {"shifted_interpolation.descent": "dpcore_shifted_interpolation.descent:Descent"},
    # What its steps move by and leave of a distance.
    "bounds": {
        "shifted_interpolation.descent": "dpcore_shifted_interpolation.descent:DescentBound",
    },
    # Noise between the steps of a process.
    "mechanisms": {
        "shifted_interpolation.inner_gaussian": (
            "dpcore_shifted_interpolation.inner_gaussian:InnerGaussian"
        ),
    },
    "examples": {"shifted_interpolation.*": "examples/*.yaml"},
    "theory": "dpcore_shifted_interpolation.statements:STATEMENTS",
    # The paper's setting of cyclic descent, which needs no records.
    "experiments": {"shifted_interpolation/*": "experiments/*.yaml"},
}
