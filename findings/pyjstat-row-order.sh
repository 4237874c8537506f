#!/usr/bin/env bash
# pyjstat writes the values of a frame in the order of its rows, whatever their labels say.
# An expert would guess that a row finds its cell by its labels, as a frame's order means nothing, and
# that a combination without a row is an empty cell.
# A cube is written whose first cells are those of the first rows, so after a sort, a shuffle or a
# group-by the counts of women stand in the cells of men. A combination without a row shifts all later
# values and leaves the cube a value short. Nothing is said in either case.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check pyjstat==2.4.0 pandas==3.1.1
venv/bin/python - >output <<'PYTHON'
import json
from importlib.metadata import version

import pandas
from pyjstat import pyjstat


def cells(frame):
    """The cells of the cube that is written from a frame, by their labels."""
    cube = json.loads(pyjstat.Dataset.read(frame).write("jsonstat"))
    sexes, years = (list(cube["dimension"][name]["category"]["index"]) for name in ("sex", "year"))
    labels = [f"{sex} {year}" for sex in sexes for year in years]
    return dict(zip(labels, cube["value"])), f"{len(cube['value'])} values of {cube['size']}"


rows = [("men", "2019", 1), ("men", "2020", 2), ("women", "2019", 30), ("women", "2020", 40)]
frame = pandas.DataFrame(rows, columns=["sex", "year", "value"])
print("pyjstat", version("pyjstat"))
print("by sex and year:", *cells(frame))
print("by year and sex:", *cells(frame.sort_values(["year", "sex"])))
print("a row is absent:", *cells(frame.drop(index=1)))
PYTHON
cat output
diff - output <<'EXPECTED'
pyjstat 2.4.0
by sex and year: {'men 2019': 1, 'men 2020': 2, 'women 2019': 30, 'women 2020': 40} 4 values of [2, 2]
by year and sex: {'men 2019': 1, 'men 2020': 30, 'women 2019': 2, 'women 2020': 40} 4 values of [2, 2]
a row is absent: {'men 2019': 1, 'men 2020': 30, 'women 2019': 40} 3 values of [2, 2]
EXPECTED
