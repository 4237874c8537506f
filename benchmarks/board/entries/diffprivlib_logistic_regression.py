"""LogisticRegression reads its classes off the labels: a class of one record is published."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://arxiv.org/abs/2602.17454"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 200
PAIR = ([0, 1] * 5, [0, 1] * 4 + [0, 2])
CONTROL = "the same classes on either side"


def release(records):
    """The shape of the published coefficients, a row for each class of more than two."""
    import numpy as np
    from diffprivlib.models import LogisticRegression

    features = np.linspace(-1, 1, len(records))[:, None]
    model = LogisticRegression(epsilon=1.0, data_norm=1.0).fit(features, np.array(records))
    return int(model.coef_.shape[0])


def control(records):
    """The coefficient where the last label is one of the two classes for either neighbour."""
    import numpy as np
    from diffprivlib.models import LogisticRegression

    labels = np.array([*records[:-1], records[-1] % 2])
    features = np.linspace(-1, 1, len(records))[:, None]
    return float(LogisticRegression(epsilon=1.0, data_norm=1.0).fit(features, labels).coef_[0, 0])
