"""Sums where the rows are: on DuckDB over Parquet, and on PostgreSQL."""
