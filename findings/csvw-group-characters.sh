#!/usr/bin/env bash
# In csvw, "1.234" with groupChar "." is 1234 as a decimal and 1.234 as a number.
# An expert would guess 1234 for each numeric base: the CSVW standard defines decimalChar and groupChar
# for all of them. The package applies both to decimal and integer only. For number, double and float
# "1.234,5" is an error, and the more common cell without a fraction is a thousandth of the amount.
# Source: W3C, Model for Tabular Data and Metadata on the Web, section 6.4.2, formats for numeric types.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check csvw==4.1.1
venv/bin/python - >output <<'PYTHON'
import json
from importlib.metadata import version
from pathlib import Path

import csvw

Path("t.csv").write_text("wage\n1.234\n", encoding="utf-8")
print("csvw", version("csvw"))
print("The cell 1.234 under decimalChar ',' and groupChar '.', by the declared base:")
for base in ("decimal", "integer", "number", "double", "float"):
    datatype = {"base": base, "format": {"decimalChar": ",", "groupChar": "."}}
    columns = [{"name": "wage", "titles": "wage", "datatype": datatype}]
    metadata = {"@context": "http://www.w3.org/ns/csvw", "url": "t.csv", "tableSchema": {"columns": columns}}
    Path("t.csv-metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    print(base, [row["wage"] for row in csvw.Table.from_file("t.csv-metadata.json")])
PYTHON
cat output
diff - output <<'EXPECTED'
csvw 4.1.1
The cell 1.234 under decimalChar ',' and groupChar '.', by the declared base:
decimal [Decimal('1234')]
integer [1234]
number [1.234]
double [1.234]
float [1.234]
EXPECTED
