"""Mechanisms that choose one of several, as they were reported to be wrong."""

from typing import ClassVar

import attrs
import numpy as np

from dpcore import Mechanism, Needs

from gallery.core import (
    NoClaimError,
    PermuteAndFlip,
    PureEvent,
    RandomizedResponse,
    RandomizedResponseEvent,
    coordinates,
    free,
    positive,
)
from gallery.entry import Single, subclass


@attrs.frozen(kw_only=True)
class ExponentialChoice(Mechanism):
    """1 at an index drawn with probability proportional to exp(epsilon score / (factor Delta))."""

    needs: ClassVar[Needs] = Needs(distance=PermuteAndFlip.needs.distance)
    arithmetic: ClassVar[str] = "real"
    source: ClassVar[str] = "as reported"
    factor: ClassVar[float] = 2.0

    epsilon: float = free(validator=positive)

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, epsilon=1 / scale)

    def event(self, query, sensitivity, moved=None):
        if query.field != "real":
            raise NoClaimError("it is for real numbers")
        return PureEvent(epsilon=self.epsilon, adjacency=sensitivity.adjacency)

    def release(self, value, query, sensitivity, noise):
        scores = coordinates(value, query)
        gumbel = -np.log(-np.log(noise.uniform(scores.size)))
        rate = self.epsilon / (self.factor * sensitivity.unit)
        chosen = np.zeros(scores.size)
        chosen[np.argmax(rate * scores + gumbel)] = 1.0
        return chosen.reshape(query.shape)


def choice_without_the_factor_two():
    """The exponential mechanism is run with half the sensitivity that scores moving in opposite
    directions have.

    Source: ryan112358/mbi issue 65 (JAM: sensitivity 2 where it is 4).
    """
    right = Single(kind="mechanisms", component=ExponentialChoice)
    return attrs.evolve(right, component=subclass(ExponentialChoice, factor=1.0)), right


@attrs.frozen(kw_only=True)
class Response(Mechanism):
    """Each category is given truly with a probability, else one of the others, uniformly."""

    needs: ClassVar[Needs] = Needs(distance=RandomizedResponse.needs.distance)
    arithmetic: ClassVar[str] = "real"
    source: ClassVar[str] = "as reported"
    binary: ClassVar[bool] = False

    epsilon: float = free(validator=positive)
    categories: int = 4

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, epsilon=1 / scale)

    def event(self, query, sensitivity, moved=None):
        if query.field != "real":
            raise NoClaimError("it is for real numbers")
        facts = {"classes": self.categories, "adjacency": sensitivity.adjacency}
        return RandomizedResponseEvent(epsilon=self.epsilon, **facts)

    def release(self, value, query, sensitivity, noise):
        true = coordinates(value, query).astype(int)
        others = 1 if self.binary else self.categories - 1
        truly = noise.uniform(true.size) < 1 / (1 + others * np.exp(-self.epsilon))
        step = 1 + np.floor(noise.uniform(true.size) * (self.categories - 1)).astype(int)
        report = np.where(truly, true, (true + step) % self.categories)
        return report.astype(float).reshape(query.shape)


def binary_truth_for_four_categories():
    """The truth is reported with e^eps/(1 + e^eps), which is right for two categories, and one of
    the others is given three times less often than that allows.

    Source: opendp/opendp issue 480, Samuel-Maddock/pure-LDP issue 11 (probabilities of the truth);
    Arcolezi & Gambs (2023), arXiv:2309.01597.
    """
    right = Single(kind="mechanisms", component=Response)
    return attrs.evolve(right, component=subclass(Response, binary=True)), right


CHOICES = (choice_without_the_factor_two, binary_truth_for_four_categories)
