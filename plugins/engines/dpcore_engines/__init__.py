"""Engines that hold records elsewhere, and add exact sums there; ledgers on PostgreSQL."""

provides = {
    "engines": {
        "dask": "dpcore_engines.dask_cluster:DaskCluster",
        "spark": "dpcore_engines.spark_choice:SparkChoice",
        "sql": "dpcore_engines.sql.choice:SqlChoice",
    },
    "sources": {"duckdb": "dpcore_engines.duckdb_file:DuckDbFile"},
}
