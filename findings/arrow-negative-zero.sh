#!/usr/bin/env bash
# In Arrow, -0.0 is a group of its own and finds no partner in a join.
# An expert would guess that equal numbers are one group: IEEE 754 says -0.0 == 0.0, and so does Arrow's
# own comparison. Its hash kernels compare bits: group_by, unique, count_distinct, is_in and join tell
# the two zeros apart. pandas, polars and DuckDB do not. -0.0 comes from rounding -0.3 or from 0 * -1,
# so the group "no change" splits into two, one of them perhaps small enough to be suppressed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6 polars==2.1.0 duckdb==2.0.1
venv/bin/python - >output <<'PYTHON'
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

changes = pa.table({"change": pc.round(pa.array([0.0, 0.2, -0.3]))})
names = pa.table({"change": [0.0], "name": ["none"]})
print("pyarrow", pa.__version__, "polars", pl.__version__, "duckdb", duckdb.__version__)
print("Three changes that round to 0 are all equal to 0, yet two groups in Arrow:")
print("equal:   ", pc.equal(changes["change"], 0.0).to_pylist())
print("groups:  ", changes.group_by("change").aggregate([([], "count_all")]).to_pylist())
print("join:    ", changes.join(names, "change")["name"].to_pylist())
print("pandas:  ", changes.to_pandas().groupby("change").size().tolist())
print("polars:  ", pl.from_arrow(changes).group_by("change").len()["len"].to_list())
print("duckdb:  ", duckdb.sql("select count(*) from changes group by change").fetchall())
PYTHON
cat output
diff - output <<'EXPECTED'
pyarrow 26.0.1 polars 2.1.0 duckdb 2.0.1
Three changes that round to 0 are all equal to 0, yet two groups in Arrow:
equal:    [True, True, True]
groups:   [{'change': 0.0, 'count_all': 2}, {'change': -0.0, 'count_all': 1}]
join:     ['none', 'none', None]
pandas:   [3]
polars:   [3]
duckdb:   [(3,)]
EXPECTED
