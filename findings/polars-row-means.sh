#!/usr/bin/env bash
# The mean of 100, 100 and 100 in one row is 14.67 where the columns are 8-bit integers.
# An expert would guess 100: a mean is a float, and the same columns' own sums and means, down the rows,
# are right because small integers are widened first.
# Across a row they are added in their own type and wrap, before the division. Down a column 8 and 16
# bits are widened to 64 and 32 bits are not, so that a sum of 32-bit numbers wraps while their mean is
# right. A total or mean of a person's few small answers is wrong where none of the columns looks wrong.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check polars==2.1.0
venv/bin/python - >output <<'PYTHON'
from importlib.metadata import version

import polars

print("polars", version("polars"))
for type_, value in (polars.Int8, 100), (polars.Int16, 30_000), (polars.Int32, 2**31 - 1):
    frame = polars.DataFrame({name: [value] * 3 for name in "abc"}, schema=dict.fromkeys("abc", type_))
    across = frame.select(polars.mean_horizontal("a", "b", "c")).item(0, 0)
    down = frame.select(mean=polars.mean("a"), sum=polars.sum("a")).row(0)
    print(f"{type_!s:6} three times {value}: mean of a row {across:.2f}, of a column {down[0]:.2f}")
    print(f"       sum of a column {down[1]}")
PYTHON
cat output
diff - output <<'EXPECTED'
polars 2.1.0
Int8   three times 100: mean of a row 14.67, of a column 100.00
       sum of a column 300
Int16  three times 30000: mean of a row 8154.67, of a column 30000.00
       sum of a column 90000
Int32  three times 2147483647: mean of a row 715827881.67, of a column 2147483647.00
       sum of a column 2147483645
EXPECTED
