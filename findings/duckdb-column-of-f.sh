#!/usr/bin/env bash
# A CSV column that holds only F (or T and F) is read as booleans by DuckDB.
# An expert would guess text, as pandas, polars and Arrow read it: T and F are no truth values in CSV.
# DuckDB tries BOOLEAN first, and takes F for false. One M anywhere in the sample makes all cells text.
# So the type of a column, and with it every query `sex = 'F'`, depends on whether the file holds a man:
# on one record's value, which no public domain can express.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check duckdb==2.0.1 pandas==3.1.1 numpy==2.4.6 polars==2.1.0 pyarrow==26.0.1
venv/bin/python - >output <<'PYTHON'
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv

print("duckdb", duckdb.__version__, "pandas", pd.__version__, "polars", pl.__version__, "pyarrow", pa.__version__)
print("A column of sexes is boolean in DuckDB until the first man comes:")
for name, sexes in (("women", "FFF"), ("both", "FFM")):
    file = name + ".csv"
    Path(file).write_text("sex,age\n" + "".join(f"{sex},40\n" for sex in sexes))
    print(name, "duckdb", duckdb.sql(f"select typeof(sex), sex from '{file}'").fetchall())
    others = pd.read_csv(file), pl.read_csv(file), pyarrow.csv.read_csv(file).to_pydict()
    print(name, "others", *(list(other["sex"]) for other in others))
PYTHON
cat output
diff - output <<'EXPECTED'
duckdb 2.0.1 pandas 3.1.1 polars 2.1.0 pyarrow 26.0.1
A column of sexes is boolean in DuckDB until the first man comes:
women duckdb [('BOOLEAN', False), ('BOOLEAN', False), ('BOOLEAN', False)]
women others ['F', 'F', 'F'] ['F', 'F', 'F'] ['F', 'F', 'F']
both duckdb [('VARCHAR', 'F'), ('VARCHAR', 'F'), ('VARCHAR', 'M')]
both others ['F', 'F', 'M'] ['F', 'F', 'M'] ['F', 'F', 'M']
EXPECTED
