#!/usr/bin/env bash
# In dask, quantiles and samples depend on how the rows are split.
# An expert would guess small errors of a sketch, and a sample of about the asked share.
# The lower quartile of six rows is 1.25, 1.0, 0.5 or 0.25: by the number of partitions, and by whether
# the median is asked in the same call. A tenth of 100 rows is 10 rows, 9 or none, because each
# partition rounds its own share.
# A figure that depends on the file's layout has no sensitivity that a definition could bound, and a
# sampling rate that a privacy proof amplifies by must be the one that was used.
# Source: dask's documentation of Series.quantile, which calls the result approximate.
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

six = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]})
hundred = pd.DataFrame({"x": range(100)})
print("dask", dask.__version__, "pandas", pd.__version__)
print("The lower quartile of 0 to 5 is", six.x.quantile(0.25), "in pandas; in dask, by partitions:")
for parts in (1, 2, 3):
    x = dd.from_pandas(six, npartitions=parts).x
    print(parts, "alone", x.quantile(0.25).compute(), "and beside the median", x.quantile([0.25, 0.5]).compute()[0.25])
print("A sample of a tenth of 100 rows has so many rows, by partitions:")
for parts in (1, 3, 10, 20):
    print(parts, len(dd.from_pandas(hundred, npartitions=parts).sample(frac=0.1, random_state=0)))
PYTHON
cat output
diff - output <<'EXPECTED'
dask 2026.8.0 pandas 3.1.1
The lower quartile of 0 to 5 is 1.25 in pandas; in dask, by partitions:
1 alone 1.25 and beside the median 1.25
2 alone 0.5 and beside the median 1.0
3 alone 0.25 and beside the median 0.5
A sample of a tenth of 100 rows has so many rows, by partitions:
1 10
3 9
10 10
20 0
EXPECTED
