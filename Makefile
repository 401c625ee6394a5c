# `make run` and `make test` work from a bare clone with python3 (>= 3.11) and make.
# PYTHON=python3.12 chooses the interpreter; NO_VENV=1 uses its packages as they are.

PYTHON ?= python3
VENV   := .venv

ifdef NO_VENV
PY    := $(PYTHON)
READY :=
else
PY    := $(VENV)/bin/python
READY := $(VENV)/ready
endif

PTXGEN := $(PY) -m ptxgen
# Only what exists: benchmarks and examples are linted too once they are there.
SOURCES := $(wildcard ptxgen tests tools bench examples)
# Tests run in this many processes; more only helps on machines with more cores.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help run test test-gpu bench lint format golden generate clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY)  ## render, compile and check every kernel, prove the routes, run a linear layer
	@echo "== 1/5 rendering and compiling every kernel"
	@$(PTXGEN) build
	@echo "== 2/5 comparing the generated code with the goldens"
	@$(PTXGEN) golden check
	@echo "== 3/5 comparing the generated dispatcher with the route tables"
	@$(PTXGEN) generate --check
	@echo "== 4/5 proving the routes"
	@$(PTXGEN) prove
	@echo "== 5/5 a linear layer, forward and backward"
	@$(PTXGEN) demo

test: $(READY) lint  ## lint, types, generated code, goldens, proofs and tests
	@echo "== generated dispatcher"
	@$(PTXGEN) generate --check
	@echo "== goldens"
	@$(PTXGEN) golden check
	@echo "== proofs"
	@$(PTXGEN) prove
	@echo "== tests"
	@$(PY) -m pytest -q -n $(JOBS) --dist loadgroup

test-gpu: $(READY)  ## the tests that need a GPU (fails if there is none)
	@$(PY) -m pytest -q -m gpu --require-gpu -n $(JOBS) --dist loadgroup

bench: $(READY)  ## time the GEMM triad beside its peers (needs a GPU)
	@$(PTXGEN) bench gemm

lint: $(READY)  ## ruff and mypy
	@echo "== lint and types"
	@$(PY) -m ruff check $(SOURCES)
	@$(PY) -m ruff format --check --quiet $(SOURCES) || \
		{ echo "some files are not formatted; make format does it"; exit 1; }
	@$(PY) -m mypy --strict ptxgen

format: $(READY)  ## format the sources
	@$(PY) -m ruff check --fix-only --quiet $(SOURCES)
	@$(PY) -m ruff format $(SOURCES)

golden: $(READY)  ## write the goldens (review the diff before you commit it)
	@$(PTXGEN) golden update

generate: $(READY)  ## write the dispatcher from the route tables
	@$(PTXGEN) generate

clean:  ## remove everything that make and the tools made
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .benchmarks
	find ptxgen tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
		"ptxgen needs Python 3.11 or newer, this is " + sys.version.split()[0] + \
		"; choose one with make PYTHON=python3.12")'
	@echo "== setting up $(VENV) (once; downloads about 150 MB of packages)"
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@echo "   done"
	@touch $@
