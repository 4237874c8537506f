#!/usr/bin/env bash
# Python's statistics.mean of a numpy array of integers is cut to an integer.
# An expert would guess 1.5 for 1 and 2, as for a list of them.
# The module works exactly and then converts the fraction to the type of the data; for numpy's integers
# that conversion cuts. mean and variance are affected, fmean, median and lists of int are not, and a
# mean of 0/1 flags becomes 0: a share of 0 % where half said yes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check numpy==2.4.6
venv/bin/python - >output <<'PYTHON'
import statistics

import numpy as np

flags = np.array([0, 1, 1, 0])
print("numpy", np.__version__)
print("The mean of 0, 1, 1, 0 is 0 when numpy holds them, 0.5 when a list does:")
print("mean:    ", statistics.mean(flags), statistics.mean(flags.tolist()))
print("variance:", statistics.variance(flags), statistics.variance(flags.tolist()))
print("fmean:   ", statistics.fmean(flags), statistics.fmean(flags.tolist()))
PYTHON
cat output
diff - output <<'EXPECTED'
numpy 2.4.6
The mean of 0, 1, 1, 0 is 0 when numpy holds them, 0.5 when a list does:
mean:     0 0.5
variance: 0 0.3333333333333333
fmean:    0.5 0.5
EXPECTED
