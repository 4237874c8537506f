#!/usr/bin/env bash
# The variance within groups in dask is 0 for large values that lie close together.
# An expert would guess that grouped and ungrouped variances are computed in the same way.
# dask computes the ungrouped one stably, but the grouped one as a sum of squares less a squared sum,
# with negative results set to 0. For seconds since 1970 all digits cancel: 0 instead of 3.5.
# A standard error or a noise scale made from it is 0, which looks like perfect agreement.
# Source: dask/dask, issue 6306 and pull request 5728 (negative variances become 0).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check 'dask[dataframe]==2026.8.0' pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1
venv/bin/python - >output <<'PYTHON'
import dask
import dask.dataframe as dd
import pandas as pd

visits = pd.DataFrame({"ward": ["a"] * 6, "time": [1_700_000_000.0 + second for second in range(6)]})
lazy = dd.from_pandas(visits, npartitions=2)
print("dask", dask.__version__)
print("Six consecutive seconds have the variance 3.5; by group dask says 0:")
print("pandas, by group:", visits.groupby("ward").time.var().tolist())
print("dask, no group:  ", [lazy.time.var().compute().item()])
print("dask, by group:  ", lazy.groupby("ward").time.var().compute().tolist())
PYTHON
cat output
diff - output <<'EXPECTED'
dask 2026.8.0
Six consecutive seconds have the variance 3.5; by group dask says 0:
pandas, by group: [3.5]
dask, no group:   [3.5]
dask, by group:   [0.0]
EXPECTED
