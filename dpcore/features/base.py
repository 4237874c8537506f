"""FeatureMap: a public map from encoded rows to features, with a norm that holds for every row."""

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray

from dpcore.domain import Domain
from dpcore.randomness import PublicCoins


class Features(ABC):
    """A feature map whose public coins are drawn: a fixed function of one row."""

    @abstractmethod
    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Features of encoded rows, shape (n, p) to (n, width); each row at most `norm` long."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was drawn, by name, to be published with the model."""
        return {}


class FeatureMap(ABC):
    """A recipe for features: its width and norm are known before any coin is drawn."""

    @abstractmethod
    def width(self, domain: Domain) -> int:
        """Number of features."""

    @abstractmethod
    def norm(self, domain: Domain) -> float:
        """kappa: an l2 bound on the features of *every* row of the domain, whatever the coins."""

    @abstractmethod
    def draw(self, domain: Domain, coins: PublicCoins) -> Features:
        """The fixed function, drawn from the public stream "features"."""
