#!/usr/bin/env bash
# A difference of two counts of polars is unsigned.
# An expert would guess -1 for "2 yes minus 3 no": Python's integers, SQL and pandas say so.
# polars counts in unsigned 32-bit integers and does not check: -1 comes out as 4294967295. A balance
# (births less deaths, gains less losses) is then published as 4 billion, or clipped to the upper bound.
# Source: pola-rs/polars, issues 15415 and 21390.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check polars==2.1.0
venv/bin/python - >output <<'PYTHON'
import polars as pl

people = pl.DataFrame({"answer": ["yes", "yes", "no", "no", "no"]})
yes, no = (pl.col("answer") == "yes").sum(), (pl.col("answer") == "no").sum()
print("polars", pl.__version__)
print("The difference of two counts wraps around at zero, without a word:")
print(people.select(balance=yes - no, too_few=pl.len() - 6, signed=yes.cast(pl.Int64) - no).to_dicts())
PYTHON
cat output
diff - output <<'EXPECTED'
polars 2.1.0
The difference of two counts wraps around at zero, without a word:
[{'balance': 4294967295, 'too_few': 4294967295, 'signed': -1}]
EXPECTED
