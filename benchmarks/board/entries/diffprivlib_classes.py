"""The classes of GaussianNB are read off the labels, and its shapes say that one was there."""

LIBRARY, VERSION = "diffprivlib", "0.6.6"
PINS = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
REFERENCE = "https://arxiv.org/abs/2602.17454"
FIXED = "open"
CLAIM = {"epsilon": 1.0}
RELATION = "replace_one"
DRAWS = 600
PAIR = ([[0.5, 0]] * 10 + [[0.5, 1]] * 10, [[0.5, 0]] * 10 + [[0.5, 1]] * 9 + [[0.5, 2]])
CONTROL = "a forest that is given its classes"


def release(records):
    """The published classes of a naive Bayes model."""
    import numpy as np
    from diffprivlib.models import GaussianNB

    table = np.array(records)
    model = GaussianNB(epsilon=1.0, bounds=(0.0, 1.0))
    return model.fit(table[:, :1], table[:, 1].astype(int)).classes_.tolist()


def control(records):
    """The published classes of a model that does not read them off."""
    import numpy as np
    from diffprivlib.models import RandomForestClassifier

    table = np.array(records)
    model = RandomForestClassifier(
        n_estimators=1, epsilon=1.0, bounds=(0.0, 1.0), classes=[0, 1, 2], max_depth=1
    )
    return model.fit(table[:, :1], table[:, 1].astype(int)).classes_.tolist()
