#!/usr/bin/env bash
# OpenDP casts the text "false" to true, and "1.0" to no integer at all.
# An expert would guess false for "false" (or the default, where the text is not understood), and 1 for
# "1.0", as the cast from float to integer does.
# Texts become true unless they are empty. Integers are parsed strictly, so "1.0", "1e3" and " 5" become
# the default 0, while floats take the first two. A count of people who said no counts all of them, and
# a column that some tool wrote with decimals is a column of zeros, without an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check opendp==0.16.0
venv/bin/python - >output <<'PYTHON'
from importlib.metadata import version

import opendp.prelude as dp

dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
print("opendp", version("opendp"))
print("Texts as truth values, integers and floats by make_cast_default:")
answers = ["true", "false", "no", "0", ""]
print(answers, dp.t.make_cast_default(*space, TOA=bool)(answers))
numbers = ["1", "1.0", "1e3", " 5", "+4"]
print(numbers, dp.t.make_cast_default(*space, TOA=int)(numbers))
print(numbers, dp.t.make_cast_default(*space, TOA=float)(numbers))
PYTHON
cat output
diff - output <<'EXPECTED'
opendp 0.16.0
Texts as truth values, integers and floats by make_cast_default:
['true', 'false', 'no', '0', ''] [True, True, True, True, False]
['1', '1.0', '1e3', ' 5', '+4'] [1, 0, 0, 0, 4]
['1', '1.0', '1e3', ' 5', '+4'] [1.0, 1.0, 1000.0, 0.0, 4.0]
EXPECTED
