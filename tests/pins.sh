#!/usr/bin/env bash
# The default tests with the oldest and with the newest versions that pyproject.toml admits.
# Usage: tests/pins.sh [PYTHON ...]; the environments are below .venv/pins. The oldest versions are
# tried with the first PYTHON alone, because they were never built for a Python that came later. The
# newest include data frames, Dask and DuckDB. A later PYTHON that is not there is named and left out.
# TESTS="tests/sources tests/ledger" tries these alone; ENDS=newest tries no oldest versions.
set -euo pipefail
cd "$(dirname "$0")/.."
pythons=("${@:-python3}")
read -ra tests <<<"${TESTS:-}"
oldest() { # the lower ends of the dependencies and of the extras sklearn and arrow, as exact pins
  "$1" - <<'EOF'
import re, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
for pin in [*project["dependencies"], *extras["sklearn"], *extras["arrow"]]:
    name, version = re.match(r"([A-Za-z0-9_-]+)>=([0-9.]+)", pin).groups()
    print(f"{name}=={version}")
EOF
}
ends="${ENDS:-oldest newest}"
for python in "${pythons[@]}"; do
  if [ "$python" != "${pythons[0]}" ] && ! "$python" -c pass 2>/dev/null; then
    echo "$python: not here, and not tried"
    continue
  fi
  for end in $ends; do
    place=".venv/pins/$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$end"
    "$python" -m venv --clear "$place"
    pins=() plugins=()
    for plugin in plugins/*/pyproject.toml; do plugins+=(-e "$(dirname "$plugin")"); done
    if [ "$end" = newest ]; then
      plugins+=(-e ".[frames,sql]" -e "plugins/engines[dask,sql]")
    else
      mapfile -t pins < <(oldest "$python")
    fi
    "$place/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade \
      -e ".[test,sklearn,arrow]" "${plugins[@]}" "${pins[@]}"
    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
      "$place/bin/python" -m pytest -q -m "not slow" -n "${JOBS:-2}" "${tests[@]}"
    echo "$place: passed"
  done
  ends=newest
done
