#!/usr/bin/env bash
# After one huge value, all later moving sums of bottleneck are wrong, far outside its window.
# An expert would guess that a window of two values depends on two values.
# bottleneck adds what enters and subtracts what leaves; what 1e17 swallowed never comes back, and after
# an infinity every sum is NaN. pandas and polars recover. One record then moves every later window, so
# its influence is not the number of windows that it lies in, on which a sensitivity would be built.
# Source: pydata/bottleneck, issues 164 and 377 (small remainders).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check bottleneck==1.6.0 numpy==2.4.6 pandas==3.1.1 polars==2.1.0
venv/bin/python - >output <<'PYTHON'
import bottleneck as bn
import numpy as np
import pandas as pd
import polars as pl

values = np.array([1.0, 2.0, 1e17, 3.0, 4.0, 5.0, 6.0])
print("bottleneck", bn.__version__, "pandas", pd.__version__, "polars", pl.__version__)
print("Sums of the neighbours 3+4, 4+5, 5+6 at the end of", values.tolist())
print("bottleneck:", bn.move_sum(values, 2)[4:].tolist())
print("pandas:    ", pd.Series(values).rolling(2).sum()[4:].tolist())
print("polars:    ", pl.Series(values).rolling_sum(2)[4:].to_list())
print("bottleneck after an infinity:", bn.move_sum(np.where(values > 9, np.inf, values), 2)[4:].tolist())
print("polars after an infinity:    ", pl.Series(np.where(values > 9, np.inf, values)).rolling_sum(2)[4:].to_list())
PYTHON
cat output
diff - output <<'EXPECTED'
bottleneck 1.6.0 pandas 3.1.1 polars 2.1.0
Sums of the neighbours 3+4, 4+5, 5+6 at the end of [1.0, 2.0, 1e+17, 3.0, 4.0, 5.0, 6.0]
bottleneck: [0.0, 2.0, 4.0]
pandas:     [7.0, 9.0, 11.0]
polars:     [7.0, 9.0, 11.0]
bottleneck after an infinity: [nan, nan, nan]
polars after an infinity:     [7.0, 9.0, 11.0]
EXPECTED
