PYTHON ?= python3
LATER ?= python3.12 python3.13
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/demo
HOSTS := $(VENV)/hosts
PEERS := $(VENV)/peers
PLUGINS := $(wildcard plugins/*/pyproject.toml)
SIBLINGS := $(PLUGINS:%/pyproject.toml=%)
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# tests start hundreds of interpreters: byte code is compiled once, whatever the caller's habits
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-hosts peers test-pins dist test-wheels lint docs clean

# the core, tables, statistics, and what they need alone
demo: $(DEMO)/.installed
	$(DEMO)/bin/dpcore run examples/quickstart.yaml

test: $(VENV)/.installed
	$(ONE_THREAD) $(BIN)/python -m pytest -q -m "not slow" -n 2

test-all: $(VENV)/.installed $(VENV)/.axe
	$(ONE_THREAD) HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -q -n 2

# the bridges beside the toolkits that they connect, and plugins beside DuckDB, PostgreSQL, Spark and JAX,
# in an environment of their own
test-hosts: $(HOSTS)/.installed
	$(HOSTS)/bin/python -c 'import diffprivlib, dp_accounting, opendp.prelude'
	$(HOSTS)/bin/python -c 'import duckdb, flatbuffers, jax, pyspark, sqlglot'
	$(ONE_THREAD) $(HOSTS)/bin/python -m pytest -q -m "not slow" -n 2 plugins/bridges/tests \
	  plugins/engines/tests/test_sql.py plugins/engines/tests/test_sql_csv.py \
	  plugins/engines/tests/test_duckdb_file.py plugins/engines/tests/test_spark.py \
	  plugins/engines/tests/test_sql_captured.py plugins/engines/tests/test_sql_postgresql.py \
	  plugins/engines/tests/test_column_types_sql.py \
	  plugins/training/tests/test_jax_network.py \
	  --ignore=plugins/bridges/tests/test_sklearn.py

# accounting and statistics against other libraries, torch among them; never part of .ci/run
peers: $(PEERS)/.installed
	$(ONE_THREAD) $(PEERS)/bin/python -m pytest -q plugins/bridges/tests tests/accounting \
	  plugins/statistics/tests/test_statistics_peers.py \
	  plugins/training/tests/test_torch_network.py
	$(ONE_THREAD) $(PEERS)/bin/python benchmarks/accounting.py

test-pins: $(VENV)/.installed
	tests/pins.sh $(PYTHON) $(LATER)

dist: $(VENV)/.installed
	rm -rf dist
	for folder in . $(SIBLINGS); do \
	  (cd $$folder && $(CURDIR)/$(BIN)/python -m hatchling build --target wheel \
	    --directory $(CURDIR)/dist) || exit 1; \
	done

# each documented subset from wheels, in clean environments without an index
test-wheels: dist $(VENV)/wheels/.complete
	DPCORE_WHEELS=$(CURDIR)/dist:$(CURDIR)/$(VENV)/wheels \
	  $(BIN)/python -m pytest -q tests/wheels

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# not --quiet, which hides warnings from --strict
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir $(VENV)/site

$(VENV)/.installed: pyproject.toml $(PLUGINS)
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("dpcore needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -e ".[test,arrow,sql]" -e "plugins/engines[dask]" $(SIBLINGS:%=-e %)
	touch $@

$(DEMO)/.installed: pyproject.toml $(PLUGINS)
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check \
	  ".[sklearn]" ./plugins/models ./plugins/statistics ./plugins/tables
	touch $@

$(PEERS)/.installed: pyproject.toml $(PLUGINS)
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -e ".[test,frames,bench]" -e "plugins/bridges[opendp,dp-accounting]" opacus \
	  $(SIBLINGS:%=-e %)
	touch $@

# of others alone: no index is asked for a distribution of ours
$(VENV)/wheels/.complete: pyproject.toml $(PLUGINS) $(VENV)/.installed
	$(BIN)/python tests/wheels/requirements.py test arrow sklearn > $(VENV)/wheels.txt
	$(BIN)/python -m pip download --quiet --disable-pip-version-check \
	  --dest $(VENV)/wheels --requirement $(VENV)/wheels.txt
	touch $@

# without npm the tests of pages in a browser skip, and say so
$(VENV)/.axe: $(VENV)/.installed
	-npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/axe axe-core@4
	touch $@

$(HOSTS)/.installed: pyproject.toml $(PLUGINS)
	$(PYTHON) -m venv $(HOSTS)
	$(HOSTS)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -e ".[test,frames]" -e "plugins/bridges[opendp,dp-accounting,diffprivlib]" \
	  -e "plugins/engines[connect,sql]" -e "plugins/training[jax]" $(SIBLINGS:%=-e %)
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[lint]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) runs build dist
