"""Where `dpcore.conformance` went: it is `dpcore_attacks`, of the distribution dpcore-attacks."""

from dpcore.siblings import INSTALL

raise ImportError(
    f"dpcore.conformance is dpcore_attacks now, of dpcore-attacks: {INSTALL} in a clone"
)
