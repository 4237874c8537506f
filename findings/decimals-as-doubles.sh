#!/usr/bin/env bash
# One decimal in eight becomes another double than its digits say, in Arrow and in fastparquet.
# An expert would guess the nearest double: decimal 4.35 becomes what Python reads from "4.35".
# Both multiply the unscaled integer by 0.01, which is not a hundredth: 4.35 becomes 4.3500000000000005.
# polars, DuckDB and DataFusion give the nearest double. Values that stood on a bin's edge or on a grid
# of cents stand beside it afterwards, and two readers of one file differ in exact comparisons.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6 polars==2.1.0 duckdb==2.0.1 fastparquet==2026.9.0
venv/bin/python - >output <<'PYTHON'
from decimal import Decimal

import duckdb
import fastparquet
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

digits = [f"{cents / 100:.2f}" for cents in range(10_001)]
t = pa.table({"x": pa.array([Decimal(text) for text in digits], pa.decimal128(7, 2))})
pq.write_table(t, "t.parquet")
doubles = {
    "pyarrow": t["x"].cast(pa.float64()).to_pylist(),
    "fastparquet": fastparquet.ParquetFile("t.parquet").to_pandas()["x"].tolist(),
    "polars": pl.from_arrow(t["x"]).cast(pl.Float64).to_list(),
    "duckdb": [x for (x,) in duckdb.sql("select x::double from t").fetchall()],
}
for library in (pa, fastparquet, pl, duckdb):
    print(library.__name__, library.__version__)
print("Of the amounts 0.00 to 100.00, so many become another double than their digits, and 4.35 becomes:")
for name, values in doubles.items():
    print(name, sum(value != float(text) for value, text in zip(values, digits, strict=True)), values[435])
PYTHON
cat output
diff - output <<'EXPECTED'
pyarrow 26.0.1
fastparquet 2026.9.0
polars 2.1.0
duckdb 2.0.1
Of the amounts 0.00 to 100.00, so many become another double than their digits, and 4.35 becomes:
pyarrow 1327 4.3500000000000005
fastparquet 1327 4.3500000000000005
polars 0 4.35
duckdb 0 4.35
EXPECTED
