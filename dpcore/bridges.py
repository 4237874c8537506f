"""Where `dpcore.bridges` went: it is `dpcore_bridges`, of the distribution dpcore-bridges."""

from dpcore.siblings import INSTALL

raise ImportError(f"dpcore.bridges is dpcore_bridges now, of dpcore-bridges: {INSTALL} in a clone")
