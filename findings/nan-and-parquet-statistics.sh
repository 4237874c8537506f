#!/usr/bin/env bash
# A filter finds other rows in a Parquet file than in the same table in memory.
# An expert would guess that reading is not part of a query's meaning.
# Parquet's minimum and maximum leave NaN out. Engines that skip row groups by them lose the NaN that
# their own comparison keeps: in DuckDB and DataFusion NaN is above all numbers, in Arrow `not x <= 100` holds for it.
# DuckDB takes a maximum from the same place: 2 alone, NaN beside a sum. A count, and which records
# a release rests on, then depends on whether the data came from a file.
# Source: the Parquet format's notes on statistics; duckdb/duckdb, issue 25521.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1 datafusion==55.0.0
venv/bin/python - >output <<'PYTHON'
import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

t = pa.table({"x": [1.0, 2.0, float("nan")]})
pq.write_table(t, "t.parquet")
context = datafusion.SessionContext()
context.register_parquet("file", "t.parquet")
context.from_arrow(t, name="memory")
duckdb.sql("create table memory as from t")
rows = "select count(*) as n from {} where not x <= 100"
unlike = ~(pc.field("x") <= 100)
print("pyarrow", pa.__version__, "polars", pl.__version__, "duckdb", duckdb.__version__, end=" ")
print("datafusion", datafusion.__version__)
print("Rows of 1, 2, NaN with `not x <= 100`, in the file and in memory:")
print("pyarrow   ", ds.dataset("t.parquet").count_rows(filter=unlike), t.filter(unlike).num_rows)
print("duckdb    ", *(duckdb.sql(rows.format(s)).fetchall()[0][0] for s in ("'t.parquet'", "memory")))
print("datafusion", *(context.sql(rows.format(s)).to_pydict()["n"][0] for s in ("file", "memory")))
print("polars    ", *(f.filter(~(pl.col("x") <= 100)).collect().height for f in (pl.scan_parquet("t.parquet"), pl.from_arrow(t).lazy())))
print("duckdb's max(x) alone, and beside sum(x):", *duckdb.sql("select max(x) from 't.parquet'").fetchall()[0], *duckdb.sql("select max(x), sum(x) from 't.parquet'").fetchall()[0][:1])
PYTHON
cat output
diff - output <<'EXPECTED'
pyarrow 26.0.1 polars 2.1.0 duckdb 2.0.1 datafusion 55.0.0
Rows of 1, 2, NaN with `not x <= 100`, in the file and in memory:
pyarrow    0 1
duckdb     0 1
datafusion 0 1
polars     1 1
duckdb's max(x) alone, and beside sum(x): 2.0 nan
EXPECTED
