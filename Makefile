PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 8
QUICK_JOBS ?= 2
unexport PYTHONDONTWRITEBYTECODE
QUICK := not process and not terminal and not parity and not slow

.PHONY: help install demo test quick lint check check-torch check-cluster docs bench dist oldest newest environments bundle clean

help:
	@echo "make demo     set up, build the embedded model pair and compare its layers (app on a terminal, table otherwise)"
	@echo "make test     set up and run every check: ruff, mypy, import contracts, tests"
	@echo "make quick    ruff, mypy, import contracts and the fast tests: for every change"
	@echo "make docs     the documentation as a web site in site/"
	@echo "make install  leave the command in $(BIN)/layerwise"
	@echo "make dist     wheels and source archives of layerwise and layerwise-core in dist/"
	@echo "make bundle   all wheels to install offline, with hashes, in bundle/ (EXTRAS=cpu)"
	@echo "make oldest   the fast tests on the oldest dependencies that are declared (PYTHON=3.10); make newest: on the newest"
	@echo "make environments  each distribution and extra in an environment of its own: what works there (needs network)"
	@echo "make bench    benchmarks beside the real Polygraphy (minutes)"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or later is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

# Beside the environment: real Polygraphy and the forks of all other tests would load it too.
$(VENV)/.installed-torch: Makefile | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --upgrade --target $(VENV)/torch 'torch>=2.13,<2.14'
	@touch $@

install: $(VENV)/.installed

demo: install
	@$(BIN)/layerwise demo

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The first line has one process write the bytecode of the test modules, which all workers read.
check: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null || true
	$(BIN)/python -m pytest -n $(JOBS)

check-torch: $(VENV)/.installed-dev $(VENV)/.installed-torch
	PYTHONPATH=$(abspath $(VENV)/torch) $(BIN)/python -m pytest -n $(QUICK_JOBS) tests/backends/torch tests/debugtools/torch

# Beside the environment, as torch: its packages would be among the versions that every other test records.
$(VENV)/.installed-cluster: Makefile | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --upgrade --target $(VENV)/cluster 'distributed>=2024.8,<2027' 'dask-jobqueue>=0.9,<0.10' 'cryptography>=42'
	@touch $@

check-cluster: $(VENV)/.installed-dev $(VENV)/.installed-cluster
	PYTHONPATH=$(abspath $(VENV)/cluster) $(BIN)/python -m pytest tests/debugtools/matrix

test: $(BIN)/python
	@$(MAKE) --no-print-directory -j 3 lint check check-torch check-cluster

quick: lint
	$(BIN)/python -m pytest -n $(QUICK_JOBS) --durations=0 --durations-min=5 -m "$(QUICK)"

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# Not --quiet: that takes the warnings away before --strict counts them.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

dist: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/hatchling build -d dist
	cd packaging/core && $(abspath $(BIN))/hatchling build -d $(abspath dist)

EXTRAS ?= cpu
bundle: | $(BIN)/python
	$(BIN)/python packaging/bundle.py bundle "$(EXTRAS)"

oldest newest: $(VENV)/.installed-dev
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python packaging/dependencies.py $@ $(PYTHON)

environments: $(VENV)/.installed-dev
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python packaging/environments.py

clean:
	rm -rf $(VENV) build bundle dist site *.egg-info
