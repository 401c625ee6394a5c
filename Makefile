# `make run` and `make test` work from a bare clone with python3 (>= 3.11) and make.
# PYTHON=python3.12 chooses the interpreter; NO_VENV=1 uses its packages as they are.

PYTHON ?= python3
VENV   := .venv
DOCS   := build/venv-docs
OLDEST := build/venv-oldest
RELEASE := build/venv-release
# Interpreters that make release tries the documents' commands with.
PYTHONS ?= python3.11 python3.12 python3.13
# test-torch has an environment of its own. TORCH='torch==2.13.0+cpu' takes that build of PyTorch
# (pip's own settings say where from).
TORCH      ?= torch
TORCH_VENV := build/venv-torch

ifdef NO_VENV
PY    := $(PYTHON)
READY :=
TORCH_PY := $(PYTHON)
else
PY    := $(VENV)/bin/python
READY := $(VENV)/ready
TORCH_PY := $(TORCH_VENV)/bin/python
endif

PTXGEN := $(PY) -m ptxgen
# Only what exists: benchmarks and examples are linted too once they are there.
SOURCES := $(wildcard ptxgen tests tools bench examples)
# Tests run in this many processes; more only helps on machines with more cores.
JOBS ?= 2
# Arrays of some MiB keep their memory in the process: glibc would map and clear it for each anew.
export MALLOC_MMAP_THRESHOLD_ ?= 33554432
export MALLOC_TRIM_THRESHOLD_ ?= 268435456

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-torch test-oldest test-gpu check mutate release bench docs
.PHONY: lint format golden generate clean generated goldens bits proofs
.PHONY: torch-ready torch-tests torch-mistakes

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY)  ## a first minute: some kernels compiled and compared, a layer run bit for bit
	@echo "== 1/3 what is here"
	@$(PTXGEN) env
	@echo "== 2/3 every kernel's source, and a sample compiled, against the goldens"
	@$(PTXGEN) golden check
	@echo "== 3/3 a linear layer, forward and backward, against NumPy"
	@$(PTXGEN) demo
	@echo "== done; make test runs the tests, make help lists the rest"

# What test and check have in common, each beside the others, and what each of them says in one
# piece: $(1) is for golden check, $(2) for pytest.
TOGETHER := --no-print-directory -j $(JOBS) $(if $(filter output-sync,$(.FEATURES)),-Otarget)
define GATES
@$(MAKE) $(TOGETHER) lint generated goldens proofs bits GOLDENS=$(1)
@echo "== tests"
@$(PY) -m pytest -q -n $(JOBS) --dist loadgroup $(2)
endef

generated: $(READY)
	@echo "== generated dispatcher"
	@$(PTXGEN) generate --check

goldens: $(READY)
	@echo "== goldens"
	@$(PTXGEN) golden check $(GOLDENS)

bits: $(READY)
	@echo "== bits of the oracles"
	@$(PTXGEN) golden bits

proofs: $(READY)
	@echo "== proofs"
	@$(PTXGEN) prove

test: $(READY)  ## lint, types, generated code, goldens (a sample compiled), bits, proofs, tests
	$(call GATES,,)

# What is alone in check runs two at a time: each has parts that one process does.
check: $(READY)  ## every kernel, long tests, oldest packages, the site, planted mistakes
	$(call GATES,--all,--long)
	@$(MAKE) $(TOGETHER) docs torch-ready
	@$(MAKE) $(TOGETHER) torch-tests mutate torch-mistakes test-oldest \
		JOBS=1 PASSED=--passed LONG=--long

# Bounds that no package of this Python has (NumPy 1.26 ends with 3.12) fail here in pip.
OLDEST_PYTHON ?= $(PYTHON)
# Between them they use every package of the run, and what differs between its versions.
OLDEST_TESTS := test_dtype test_runtime_arrays test_reference_ops test_reference_f32 test_compile \
	test_tune test_bench_int4 test_channels test_pointwise

test-oldest:  ## some tests, and the site, with the oldest packages that pyproject.toml allows
	@echo "== oldest packages"
	@test -x $(OLDEST)/bin/python || $(OLDEST_PYTHON) -m venv $(OLDEST)
	@$(OLDEST_PYTHON) tools/oldest.py test bench profile docs > $(OLDEST)/requirements.txt
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
		-r $(OLDEST)/requirements.txt
	@$(OLDEST)/bin/python -m pytest -q -n $(JOBS) $(foreach name,$(OLDEST_TESTS),$(wildcard tests/*/$(name).py))
	@$(MAKE) --no-print-directory docs NO_VENV=1 PYTHON=$(OLDEST)/bin/python

release:  ## dist/: sdist and wheel of HEAD, and the documents' commands run from the wheel
	@test -z "$$(git status --porcelain)" || { echo "commit first: dist/ is made of HEAD"; exit 1; }
	@rm -rf dist build/release
	@git clone --quiet . build/release
	@test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check build twine
	@$(RELEASE)/bin/python -m build --outdir dist build/release > build/release.log
	@$(RELEASE)/bin/python -m twine check --strict dist/*
	@for python in $(PYTHONS); do for numpy in oldest newest; do \
		echo "== the documents' commands: $$python, $$numpy NumPy"; \
		$(RELEASE)/bin/python tools/doc_commands.py dist/*.whl --python $$python --numpy $$numpy \
			|| exit 1; done; done

mutate: $(READY)  ## plant mistakes into a copy, one at a time: each must be caught by its gate
	@echo "== planted mistakes"
	@$(PY) tools/mutate.py --jobs $(JOBS) $(PASSED)

test-all: $(READY)  ## the tests alone, with the long ones
	@$(PY) -m pytest -q -n $(JOBS) --dist loadgroup --long

# The files that mention PyTorch; tests of them that ask for it are marked so by conftest.py.
TORCH_TESTS = $(shell grep -lrE 'torch|transformers' tests --include='test_*.py' --exclude-dir=gpu)

test-torch: torch-ready  ## the tests that need PyTorch (a CPU build will do), and mistakes planted for them
	@$(MAKE) --no-print-directory torch-tests
	@$(MAKE) --no-print-directory torch-mistakes

torch-ready:
ifndef NO_VENV
	@test -x $(TORCH_PY) || $(PYTHON) -m venv $(TORCH_VENV)
	@$(TORCH_PY) -m pip install --quiet --disable-pip-version-check \
		-e '.[test,models]' '$(TORCH)' transformers
endif

torch-tests:
	@echo "== tests that need PyTorch"
	@$(TORCH_PY) -m pytest -q -m torch --require-torch -n $(JOBS) --dist loadgroup $(LONG) \
		$(TORCH_TESTS)

torch-mistakes:
	@echo "== planted mistakes that need PyTorch"
	@$(TORCH_PY) tools/mutate.py --torch --jobs $(JOBS) --passed

test-gpu: $(READY)  ## the tests that need a GPU (fails if there is none)
	@$(PY) -m pytest -q -m gpu --require-gpu -n $(JOBS) --dist loadgroup

bench: $(READY)  ## time the GEMM triad beside its peers (needs a GPU)
	@$(PTXGEN) bench gemm

# In an environment of its own: what builds the site decides nothing else. Warnings are errors.
# Without what an earlier build left, so that what works here works in a fresh clone.
docs:  ## the site in build/site: the documents, and a reference from the docstrings
	@rm -rf build/api build/site
ifdef NO_VENV
	@$(PYTHON) -m mkdocs build --strict
else
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@$(DOCS)/bin/python -m mkdocs build --strict
endif

lint: $(READY)  ## ruff, mypy and words
	@echo "== lint and types"
	@$(PY) -m ruff check $(SOURCES)
	@$(PY) -m ruff format --check --quiet $(SOURCES) || \
		{ echo "some files are not formatted; make format does it"; exit 1; }
	@$(PY) tools/lint_words.py
	@$(PY) -m codespell_lib $(SOURCES) docs *.md
	@$(PY) -m mypy --strict ptxgen tests/test_types.py

format: $(READY)  ## format the sources
	@$(PY) -m ruff check --fix-only --quiet $(SOURCES)
	@$(PY) -m ruff format $(SOURCES)

golden: $(READY)  ## write the goldens of what changed (ptxgen golden diff shows it)
	@$(PTXGEN) golden update

generate: $(READY)  ## write the dispatcher, stubs, and the pages' lines of operations
	@$(PTXGEN) generate
	@PYTHONPATH=$(CURDIR) $(PY) tools/support.py --write

clean:  ## remove everything that make and the tools made
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .benchmarks
	find ptxgen tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
		"ptxgen needs Python 3.11 or newer, this is " + sys.version.split()[0] + \
		"; choose one with make PYTHON=python3.12")'
	@echo "== setting up $(VENV) (once; downloads about 150 MB of packages)"
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --disable-pip-version-check -e '.[test]'
	@echo "   done"
	@touch $@
