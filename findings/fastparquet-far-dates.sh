#!/usr/bin/env bash
# fastparquet reads the date 9999-12-31 as a day of 1816.
# An expert would guess the date itself, NaT or an error: the file stores plain days.
# fastparquet turns days into nanoseconds of 64 bits, which end in 2262, and lets them wrap. Registers
# write 9999-12-31 for "still open" and 1500-01-01 for "unknown"; both come out as credible dates that
# a check of the range 1800 to 2100 accepts. Moments in the same file are read right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check fastparquet==2026.9.0 pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1
venv/bin/python - >output <<'PYTHON'
from datetime import date, datetime

import fastparquet
import pyarrow as pa
import pyarrow.parquet as pq

days = [date(1500, 1, 1), date(2024, 1, 31), date(9999, 12, 31)]
moments = [datetime(day.year, day.month, day.day) for day in days]
pq.write_table(pa.table({"day": days, "moment": pa.array(moments, pa.timestamp("us"))}), "t.parquet")
frame = fastparquet.ParquetFile("t.parquet").to_pandas()
print("fastparquet", fastparquet.__version__, "pyarrow", pa.__version__)
print("Days before 1677 and after 2262 wrap around to other centuries:")
print("written:    ", *days)
print("pyarrow:    ", *pq.read_table("t.parquet")["day"].to_pylist())
print("fastparquet:", *(day.strftime("%Y-%m-%d") for day in frame["day"]))
print("as moments: ", *(moment.strftime("%Y-%m-%d") for moment in frame["moment"]))
PYTHON
cat output
diff - output <<'EXPECTED'
fastparquet 2026.9.0 pyarrow 26.0.1
Days before 1677 and after 2262 wrap around to other centuries:
written:     1500-01-01 2024-01-31 9999-12-31
pyarrow:     1500-01-01 2024-01-31 9999-12-31
fastparquet: 2084-07-20 2024-01-31 1816-03-29
as moments:  1500-01-01 2024-01-31 9999-12-31
EXPECTED
