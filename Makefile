# `make demo` and `make test` do everything on a fresh Debian 12+ or Ubuntu 24.04+ machine: see scripts/setup.sh.

PYTHON := .venv/bin/python
# More for pytest: make test PYTEST_ARGS="tests/unit -x"
PYTEST_ARGS ?=
# make fuzz FUZZ_ARGS="--minutes 20 result"
FUZZ_ARGS ?= --cases 1000000

# The pure layers: values and text, no side effects. Their tests need no Valgrind and cover (nearly) every branch: `make
# coverage` tells from these alone, CI from all of `make test`, which it runs once.
PURE := \
  cachegrind_bench/model/*.py \
  cachegrind_bench/valgrind/out_file.py \
  cachegrind_bench/valgrind/callgrind_file.py \
  cachegrind_bench/valgrind/out_format.py \
  cachegrind_bench/compare/*.py \
  cachegrind_bench/config/*.py \
  cachegrind_bench/history/*.py \
  cachegrind_bench/history/formats/*.py \
  cachegrind_bench/render/comparison/*.py \
  cachegrind_bench/render/trend/*.py \
  cachegrind_bench/valgrind/options.py \
  cachegrind_bench/hermetic/environment.py \
  cachegrind_bench/render/*.py
PURE_PERCENT := 95
comma := ,
empty :=
space := $(empty) $(empty)
PURE_LIST := $(subst $(space),$(comma),$(strip $(PURE)))

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow fuzz coverage covered lint lint-mypy lint-pyright lint-ruff lint-imports format clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: ## install what is missing, then measure a small Python program
	@scripts/setup.sh demo
	.venv/bin/cg-bench run --id demo -- .venv/bin/python examples/python/benchmark.py

test: ## install what is missing, then run the tests that take no longer than seconds
	@scripts/setup.sh test
	$(PYTHON) -m pytest -n auto --dist worksteal -m "not slow" $(PYTEST_ARGS)

# Many of these wait for others: servers, browsers, locks. So there are more workers than cores.
test-slow: ## the same with all others: real suites, workflows, browsers, databases, other Valgrinds and Pythons
	@scripts/setup.sh test-slow
	$(PYTHON) -m pytest -n $$(($$(nproc) * 3 / 2)) --dist worksteal -m slow $(PYTEST_ARGS)

fuzz: ## a million damaged files of the formats that others may have written, at low priority; what falls is kept in tests/data/fuzz
	@scripts/setup.sh test
	$(PYTHON) -m tests.fuzz $(FUZZ_ARGS)

coverage: ## those of `make test` without Valgrind; fails where the pure layers are not covered
	@scripts/setup.sh test
	$(PYTHON) -m pytest -n auto -m "not slow and not valgrind" --cov --cov-report= $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory covered

covered: ## what the last tests with --cov covered of the pure layers; fails where that is too little
	$(PYTHON) -m coverage report --include='$(PURE_LIST)' --fail-under=$(PURE_PERCENT)
	$(PYTHON) -m coverage json --quiet --include='$(PURE_LIST)' -o .coverage.json
	$(PYTHON) scripts/branch_coverage.py .coverage.json $(PURE_PERCENT)

lint: ## ruff, mypy, pyright and the layers
	@scripts/setup.sh lint
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-mypy lint-pyright lint-ruff lint-imports

lint-mypy:
	$(PYTHON) -m mypy

lint-pyright:
	.venv/bin/pyright

lint-ruff:
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check

lint-imports:
	.venv/bin/lint-imports --no-cache

format: ## let ruff format and mend what it safely can
	@scripts/setup.sh lint
	$(PYTHON) -m ruff check --fix-only
	$(PYTHON) -m ruff format

clean: ## remove everything that was installed or made here
	rm -rf .venv .tools .cg-bench dist build .coverage .coverage.* .hypothesis .*_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find tests -name '*.actual' -delete
