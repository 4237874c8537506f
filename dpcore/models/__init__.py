"""What a model publishes: lines, shapes, tables of numbers, confidence intervals, and how it shows
them.
"""

from typing import TYPE_CHECKING

from dpcore.siblings import lazy_names

if TYPE_CHECKING:
    from dpcore.learner import (
        LinearNoiseModel as LinearNoiseModel,
        LinearScoreModel as LinearScoreModel,
        Model as Model,
        ProbabilityModel as ProbabilityModel,
        ScoringModel as ScoringModel,
        ScoringProbabilityModel as ScoringProbabilityModel,
        Transformer as Transformer,
    )
    from dpcore.models.description import (
        Described as Described,
        Description as Description,
        IntervalPicture as IntervalPicture,
        Lines as Lines,
        Matrix as Matrix,
        Points as Points,
    )
    from dpcore.models.features.base import FeatureMap as FeatureMap, Features as Features
    from dpcore.models.figures import Figures as Figures
    from dpcore.models.linear import LinearModel as LinearModel
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "IntervalPicture": "models.description",
            "Described": "models.description",
            "Description": "models.description",
            "FeatureMap": "models.features.base",
            "Features": "models.features.base",
            "Figures": "models.figures",
            "LinearModel": "models.linear",
            "LinearNoiseModel": "learner",
            "LinearScoreModel": "learner",
            "Lines": "models.description",
            "Matrix": "models.description",
            "Model": "learner",
            "Points": "models.description",
            "ProbabilityModel": "learner",
            "ScoringModel": "learner",
            "ScoringProbabilityModel": "learner",
            "Transformer": "learner",
        },
    )
