PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 3

.PHONY: help install demo test lint check bench clean

help:
	@echo "make demo     set up, build the embedded model pair and compare its layers (app on a terminal, table otherwise)"
	@echo "make test     set up and run every check: ruff, mypy, import contracts, tests"
	@echo "make install  leave the command in $(BIN)/layerwise"
	@echo "make bench    benchmarks beside the real Polygraphy (minutes)"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

install: $(VENV)/.installed

demo: install
	@$(BIN)/layerwise demo

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS)

test: lint check

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist *.egg-info
