"""Engines that hold records elsewhere, and add exact sums there; ledgers on PostgreSQL."""

from collections.abc import Mapping

from dpcore import hookimpl
from dpcore.engines.choice import EngineChoice
from dpcore.records.location import Location
from dpcore.registry.lazy_mapping import LazyMapping


@hookimpl
def dpcore_engines() -> Mapping[str, type[EngineChoice]]:
    """Engines by the name that an operator gives."""
    return LazyMapping(
        {
            "dask": ("dpcore_engines.dask_cluster", "DaskCluster"),
            "spark": ("dpcore_engines.spark_choice", "SparkChoice"),
            "sql": ("dpcore_engines.sql.choice", "SqlChoice"),
        }
    )


@hookimpl
def dpcore_sources() -> Mapping[str, type[Location]]:
    """Kinds of source by the key that a spec names them with."""
    return LazyMapping({"duckdb": ("dpcore_engines.duckdb_file", "DuckDbFile")})
