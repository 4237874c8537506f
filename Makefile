PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HOSTS := $(VENV)/hosts
PLUGINS := $(wildcard plugins/*/pyproject.toml)
SIBLINGS := $(PLUGINS:%/pyproject.toml=%)
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test test-all test-bridges test-pins lint docs clean

demo: $(VENV)/.installed
	$(BIN)/dpcore run examples/quickstart.yaml

test: $(VENV)/.installed
	$(ONE_THREAD) $(BIN)/python -m pytest -q -m "not slow" -n 2

test-all: $(VENV)/.installed $(VENV)/.axe
	$(ONE_THREAD) HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -q -n 2

test-bridges: $(HOSTS)/.installed
	$(HOSTS)/bin/python -c 'import diffprivlib, dp_accounting, opendp.prelude'
	$(ONE_THREAD) $(HOSTS)/bin/python -m pytest -q -m "not slow" -n 2 tests/bridges --ignore=tests/bridges/test_sklearn.py

test-pins: $(VENV)/.installed
	tests/pins.sh $(PYTHON)

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

# without npm the tests of pages in a browser skip, and say so
$(VENV)/.axe: $(VENV)/.installed
	-npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/axe axe-core@4
	touch $@

$(HOSTS)/.installed: pyproject.toml $(PLUGINS)
	$(PYTHON) -m venv $(HOSTS)
	$(HOSTS)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -e ".[test,frames]" -e "plugins/bridges[opendp,dp-accounting,diffprivlib]" $(SIBLINGS:%=-e %)
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[lint]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) runs build dist
