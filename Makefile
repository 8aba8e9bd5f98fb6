# The two commands of a newcomer are `make demo` and `make test`; both set up all they need in .venv.
#
#   PYTHON       the Python (3.11 or later) that .venv is made from
#   TORCH_INDEX  where torch comes from, for example https://download.pytorch.org/whl/cpu: a download of 200 MB
#                instead of several GB on a Linux machine without a GPU
#   PIP_ARGS     more arguments for every pip install

NEW_ENOUGH := import sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
TORCH_INDEX ?=
PIP_ARGS ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=

BIN := $(abspath $(VENV))/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet $(PIP_ARGS)
TORCH := torch==2.13.0
DEMO := corpus/cases/admm-denoiser-target/before

.PHONY: help demo test check lint bench corpus venv clean

help:
	@echo 'make demo    set up .venv and repair a failing program'
	@echo 'make test    set up .venv and run the tests'
	@echo 'make check   lint, format, types and tests: what CI runs'
	@echo 'make corpus  score all cases'
	@echo 'make bench   measure how long it takes; BENCH_ARGS=--quick for a minute of it'

demo: $(VENV)/.runtime
	@BIN=$(BIN) bash docs/demo.sh $(DEMO)

test: venv
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: lint test

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: venv
	$(PIP) --editable '.[bench]'
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

corpus: venv
	$(BIN)/python corpus/scoreboard.py

venv: $(VENV)/.dev

# torch first, and the build without CUDA where pip can find one: the project itself accepts either.
$(VENV)/.runtime: pyproject.toml
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or later is needed: make PYTHON=/path/to/python3'; exit 1; }
	$(PYTHON) -m venv $(VENV)
ifdef TORCH_INDEX
	$(PIP) --index-url $(TORCH_INDEX) $(TORCH)
else
	$(PIP) '$(TORCH)+cpu' 2>/dev/null || $(PIP) $(TORCH)
endif
	$(PIP) 'numpy>=1.26' --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
