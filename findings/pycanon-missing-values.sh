#!/usr/bin/env bash
# pyCANON reports 3-anonymity for a table in which one person stands alone.
# An expert would guess k = 1, since nobody else has a missing zip.
# With one quasi-identifier the person drops out of the classes and k is that of the others. With two
# quasi-identifiers, each of which alone gives 3, k is 1. The figure is published as proof of protection.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check pycanon==1.3.6 pandas==2.3.3 numpy==2.0.2
venv/bin/python - >output <<'PYTHON'
from importlib.metadata import version

import pandas as pd
from pycanon import anonymity

people = pd.DataFrame(
    {
        "zip": ["10115", "10115", "10115", None],
        "age": [30, 30, 30, None],
        "illness": ["flu", "cold", "asthma", "cancer"],
    }
)
print("pycanon", version("pycanon"), "pandas", pd.__version__)
print("Three people are alike, the fourth has no zip and no age; k by quasi-identifiers:")
for keys in (["zip"], ["age"], ["zip", "age"]):
    print(keys, anonymity.k_anonymity(people, keys))
present = people.fillna({"zip": "unknown", "age": -1})
print("with missing values written as categories:", anonymity.k_anonymity(present, ["zip"]))
PYTHON
cat output
diff - output <<'EXPECTED'
pycanon 1.3.6 pandas 2.3.3
Three people are alike, the fourth has no zip and no age; k by quasi-identifiers:
['zip'] 3
['age'] 3
['zip', 'age'] 1
with missing values written as categories: 1
EXPECTED
