"""Private PCA: a release that predicts nothing. No paper: a textbook exercise."""

from pathlib import Path

from dpcore import hookimpl
from dpcore.learners.estimator import Estimator
from private_pca.pca import PrivatePCA


class PCA(Estimator):
    """Private principal axes as a transformer of scikit-learn."""

    learner, parts = "private_pca.pca", (PrivatePCA,)


@hookimpl
def dpcore_learners():
    """The learner, by the name that specs use."""
    return {"private_pca.pca": PrivatePCA}


@hookimpl
def dpcore_estimators():
    """The estimator that `dpcore.sklearn` offers."""
    return {"PCA": PCA}


@hookimpl
def dpcore_examples():
    """The smallest spec that uses it."""
    return {"axes": Path(__file__).with_name("example.yaml")}
