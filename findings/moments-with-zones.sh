#!/usr/bin/env bash
# The day of a moment with a time zone depends on the call in polars, on the session in DuckDB.
# An expert would guess the zone's own day: 00:30 on 1 April in Berlin is in April.
# polars' .dt.date() says so, its cast to Date takes the day in UTC. DuckDB drops the column's zone and
# takes that of the session, by default the machine's. Counts by day or month move a person between
# bins by the spelling of a query or by the computer, and two runs of one release disagree.
# Source: pola-rs/polars, issue 22864; DuckDB's documentation of TIMESTAMP WITH TIME ZONE.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1
venv/bin/python - >output <<'PYTHON'
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

utc = pa.array(["2024-03-31 22:30"]).cast(pa.timestamp("s"))
t = pa.table({"moment": utc.cast(pa.timestamp("s", "Europe/Berlin"))})
moment = pl.from_arrow(t)["moment"]
print("polars", pl.__version__, "duckdb", duckdb.__version__, "pyarrow", pa.__version__)
print("The day of", moment.dt.to_string("%Y-%m-%d %H:%M %Z")[0], "is not always in April:")
print("pyarrow, month and cast: ", pc.month(t["moment"])[0], t["moment"].cast(pa.date32())[0])
print("polars, dt.date and cast:", moment.dt.date()[0], moment.cast(pl.Date)[0])
for zone in ("Europe/Berlin", "UTC"):
    duckdb.sql(f"set timezone = '{zone}'")
    print(f"duckdb, session in {zone}:", *duckdb.sql("select month(moment), moment::date from t").fetchall()[0])
PYTHON
cat output
diff - output <<'EXPECTED'
polars 2.1.0 duckdb 2.0.1 pyarrow 26.0.1
The day of 2024-04-01 00:30 CEST is not always in April:
pyarrow, month and cast:  4 2024-04-01
polars, dt.date and cast: 2024-04-01 2024-03-31
duckdb, session in Europe/Berlin: 4 2024-04-01
duckdb, session in UTC: 3 2024-03-31
EXPECTED
