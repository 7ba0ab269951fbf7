# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check
JOBS ?= 2

.PHONY: bench demo test lint types rooms unit format lock clean help

help:
	@echo "make demo    install into .venv and run the demonstration"
	@echo "make test    lint, types, room order and every test"
	@echo "make bench   speed and scale as ratios, and how the defaults were chosen (long)"
	@echo "make format  put the code into the house format"
	@echo "make lock    write constraints.txt anew from the newest versions"
	@echo "make clean   remove .venv and caches"

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) torch==2.13.0
	$(PIP) -e ".[dev,transformers,dask,fast,postgres,figures,crowds,docs]"
	@touch $@

demo: $(VENV)/.core
	$(BIN)/edo demo --out edo-demo

test: lint types rooms unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

rooms: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/annotations.py
	$(BIN)/python benchmarks/summaries.py --items 10000000
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/gumbel.py
	$(BIN)/python benchmarks/gumbel.py --defaults
	$(BIN)/python benchmarks/defaults.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:
	$(PYTHON) tools/lock.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache edo-demo
