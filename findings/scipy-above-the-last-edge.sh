#!/usr/bin/env bash
# scipy's binned statistics count values above the last edge.
# An expert would guess that 1000000.01 is outside bins that end at 1000000, as in numpy's histogram.
# scipy rounds the values to about six digits of a bin's width before it asks whether they stand on the
# last edge, and puts those that do into the last bin. Nothing of the kind happens at the first edge.
# A bound that was declared as hard is passed by a cent: sums in the bin exceed what the range allows.
# Source: the comment on the rightmost bin in scipy/stats/_binned_statistic.py; scipy/scipy, issue 14332.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check scipy==1.17.1 numpy==2.4.6
venv/bin/python - >output <<'PYTHON'
import numpy as np
import scipy
from scipy.stats import binned_statistic

edges = [0, 500_000, 1_000_000]
print("scipy", scipy.__version__, "numpy", np.__version__)
print("How many of one value are counted in bins from 0 to 1000000:")
for value in (1_000_000, 1_000_000.01, 1_000_001, -0.01):
    counts = binned_statistic([value], [1], "count", bins=edges).statistic
    print(value, "scipy", int(counts.sum()), "numpy", int(np.histogram([value], edges)[0].sum()))
PYTHON
cat output
diff - output <<'EXPECTED'
scipy 1.17.1 numpy 2.4.6
How many of one value are counted in bins from 0 to 1000000:
1000000 scipy 1 numpy 1
1000000.01 scipy 1 numpy 0
1000001 scipy 0 numpy 0
-0.01 scipy 0 numpy 0
EXPECTED
