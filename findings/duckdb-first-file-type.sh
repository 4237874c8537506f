#!/usr/bin/env bash
# In DuckDB the first file of a folder decides the type, and later files are rounded to it.
# An expert would guess a common type, or an error as in polars and Arrow.
# DuckDB casts doubles to the first file's integers without a word, halves to the even neighbour: 1.5
# and 2.5 both become 2. In the other order nothing is lost, and union_by_name widens. Which values a
# release rests on depends on the names of files: the first is often the month without fractions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1 polars==2.1.0
venv/bin/python - >output <<'PYTHON'
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

january, february = "2024-01.parquet", "2024-02.parquet"
pq.write_table(pa.table({"hours": [1, 2]}), january)
pq.write_table(pa.table({"hours": [1.5, 2.5]}), february)
print("duckdb", duckdb.__version__, "pyarrow", pa.__version__, "polars", pl.__version__)
print("The hours 1, 2, 1.5, 2.5 of two files lose their fractions when the integers come first:")
for files in ([january, february], [february, january]):
    print("duckdb:", [x for (x,) in duckdb.sql(f"select hours from read_parquet({files})").fetchall()])
named = f"select hours from read_parquet({[january, february]}, union_by_name=true)"
print("duckdb, union_by_name:", [x for (x,) in duckdb.sql(named).fetchall()])
for name, read in (("polars", pl.read_parquet), ("pyarrow", lambda files: ds.dataset(files).to_table())):
    try:
        print(name, read([january, february]))
    except Exception as error:
        print(name, "refuses:", type(error).__name__)
PYTHON
cat output
diff - output <<'EXPECTED'
duckdb 2.0.1 pyarrow 26.0.1 polars 2.1.0
The hours 1, 2, 1.5, 2.5 of two files lose their fractions when the integers come first:
duckdb: [1, 2, 2, 2]
duckdb: [1.5, 2.5, 1.0, 2.0]
duckdb, union_by_name: [1.0, 2.0, 1.5, 2.5]
polars refuses: SchemaError
pyarrow refuses: ArrowInvalid
EXPECTED
