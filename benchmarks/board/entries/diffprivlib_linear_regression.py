"""LinearRegression adds too little noise to the squares of features whose lower bound is 0."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://github.com/IBM/differential-privacy-library/issues/105"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 1000
PAIR = ([[100.0, 0.0], *[[0.0, 0.0]] * 19], [[1.0, 0.0], *[[0.0, 0.0]] * 19])
CONTROL = "bounds from -100 to 100"


def release(records, lower=0.0):
    """The published coefficient of a model of one feature."""
    import warnings

    import numpy as np
    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")
    table = np.array(records)
    model = LinearRegression(
        epsilon=1.0, bounds_X=(lower, 100.0), bounds_y=(0.0, 1.0), fit_intercept=False
    )
    return model.fit(table[:, :1], table[:, 1]).coef_.tolist()


def control(records):
    """The same where the larger bound is squared by chance."""
    return release(records, lower=-100.0)
