#!/usr/bin/env bash
# Means and medians of decimals keep the column's scale, each engine for another figure.
# An expert would guess 1.015 for the mean and the median of 1.01 and 1.02: doubles or more digits.
# Arrow rounds the mean to the scale, so the mean of 0, 0, 1 as decimal(6, 0) is 0; DuckDB does that to
# medians, DataFusion too, by cutting; pandas shows Arrow's mean and its own median side by side.
# A share or an average price, before any noise, is off by up to one unit of the last digit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6 polars==2.1.0 duckdb==2.0.1 datafusion==55.0.0
venv/bin/python - >output <<'PYTHON'
from decimal import Decimal

import datafusion
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

t = pa.table({"x": pa.array([Decimal("1.01"), Decimal("1.02")], pa.decimal128(6, 2))})
flags = pa.array([Decimal(0), Decimal(0), Decimal(1)], pa.decimal128(6, 0))
prices = t["x"].to_pandas(types_mapper=pd.ArrowDtype)
context = datafusion.SessionContext()
context.from_arrow(t, name="t")
print("pyarrow", pa.__version__, "pandas", pd.__version__, "duckdb", duckdb.__version__, end=" ")
print("polars", pl.__version__, "datafusion", datafusion.__version__)
print("The mean and the median of 1.01 and 1.02 are 1.015:")
print("arrow:     ", pc.mean(t["x"]), "mean;", pc.mean(flags), "mean of 0, 0, 1")
print("pandas:    ", prices.mean(), "mean,", prices.median(), "median")
print("duckdb:    ", *duckdb.sql("select avg(x), median(x) from t").fetchall()[0])
print("datafusion:", *(c[0] for c in context.sql("select avg(x), median(x) from t").to_pydict().values()))
print("polars:    ", pl.from_arrow(t["x"]).mean(), pl.from_arrow(t["x"]).median())
PYTHON
cat output
diff - output <<'EXPECTED'
pyarrow 26.0.1 pandas 3.1.1 duckdb 2.0.1 polars 2.1.0 datafusion 55.0.0
The mean and the median of 1.01 and 1.02 are 1.015:
arrow:      1.02 mean; 0 mean of 0, 0, 1
pandas:     1.02 mean, 1.0150000000000001 median
duckdb:     1.015 1.01
datafusion: 1.015000 1.01
polars:     1.015 1.015
EXPECTED
