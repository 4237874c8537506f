#!/usr/bin/env bash
# diffprivlib's private median never returns the value that most people share.
# An expert would guess a result near 12 when 60 of 100 wages are exactly 12, the nearer the larger
# epsilon. The exponential mechanism picks an interval between neighbouring values by its length, and
# the shared value is an interval of length 0. With 101 fives in [0, 10] the answer is uniform on the
# range, the same for every epsilon, and at epsilon 50 the call raises an error. Minimum wages,
# ages in years, rounded prices: most medians that are published have ties.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check diffprivlib==0.6.6 numpy==2.4.6 scikit-learn==1.6.1 scipy==1.17.1
venv/bin/python - >output <<'PYTHON'
import diffprivlib
import numpy as np
from diffprivlib.tools import median

wages = np.concatenate([np.full(60, 12.0), np.linspace(13, 40, 40)])
fives = np.full(101, 5.0)
print("diffprivlib", diffprivlib.__version__)
print("Private medians by epsilon, three draws each; the medians are 12 and 5:")
for epsilon in (1, 20):
    draws = [float(median(wages, epsilon=epsilon, bounds=(0, 100), random_state=seed)) for seed in range(3)]
    ties = [float(median(fives, epsilon=epsilon, bounds=(0, 10), random_state=seed)) for seed in range(3)]
    print(epsilon, "wages", np.round(draws, 2).tolist(), "fives", np.round(ties, 2).tolist())
try:
    median(fives, epsilon=50, bounds=(0, 10), random_state=0)
except RuntimeError as error:
    print(50, "fives", type(error).__name__)
PYTHON
cat output
diff - output <<'EXPECTED'
diffprivlib 0.6.6
Private medians by epsilon, three draws each; the medians are 12 and 5:
1 wages [13.5, 12.72, 12.03] fives [8.58, 3.6, 0.13]
20 wages [12.72, 12.72, 12.03] fives [8.58, 3.6, 0.13]
50 fives RuntimeError
EXPECTED
