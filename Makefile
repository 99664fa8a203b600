# `make demo` and `make test` are all that is needed to start; `make` alone lists the rest.

PYTHON ?= python3
VENV := .venv

# One environment in two sizes: what runs the demo is a part of what the tests need, and is there much sooner.
RUNS := $(VENV)/.installed-to-run
DEVELOPS := $(VENV)/.installed
TO_RUN := .[embedded]
TO_DEVELOP := .[embedded,dev]

# Processes that run tests. Half of a test's time goes by waiting for other programs, so three fill two cores.
# Each may start a real server, which takes up to 2 GB.
WORKERS ?= 3

# For the lines of a recipe that need `agent`, `python` or `ruff` of the environment. Not for making it.
IN_ENV := export PATH="$(CURDIR)/$(VENV)/bin:$$PATH";

.DEFAULT_GOAL := help
.PHONY: help env model test-models test-server demo test test-quick compiled lint types format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "PYTHON=... chooses the interpreter for the environment (3.11 or newer)."

env: $(DEVELOPS) ## create .venv with the package and everything to develop it

# $(1): what to install, $(2): how long that takes
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: $(PYTHON) is no Python 3.11 or newer" >&2; \
		echo "hint: name one, for example  make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "installing $(1) into $(VENV), the first time this takes $(2) ..."
	@if command -v uv >/dev/null 2>&1 \
		&& uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" $(VENV) \
		&& uv pip install --python $(VENV)/bin/python -e '$(1)'; \
	then :; else \
		$(PYTHON) -m venv $(VENV) && $(VENV)/bin/python -m pip install -e '$(1)'; \
	fi
endef

$(RUNS): pyproject.toml
	$(call install,$(TO_RUN),about a minute)
	@touch $@

$(DEVELOPS): pyproject.toml
	$(call install,$(TO_DEVELOP),a few minutes)
	@touch $(RUNS) $@

model: $(RUNS) ## fetch the model of the demo (1.1 GB, kept outside this folder)
	@$(IN_ENV) agent model pull embedded

test-models: env
	@$(IN_ENV) agent model pull embedded-small embedded

# Compiled once, five minutes on two free cores and more on busy ones; after that it is found and nothing is done.
test-server: env
	@$(IN_ENV) agent server install llama.cpp --cpu --no-web-page

demo: model ## let the agent fix a real bug in a copy of examples/first-fix
	@$(IN_ENV) sh examples/demo.sh

# Each part runs even if one before it failed. The end is pytest's summary with the number of failures, and below it
# whatever else failed. What failed beside other tests is run once more by itself, so that a machine that was too busy
# for a moment is told from a fault: both summaries stay to be read. Checking the types takes one core for as long as
# all the rest before the tests takes the other.
test: env ## set up everything, check the code, run all tests
	@$(IN_ENV) status=0; failed=; told=$(VENV)/types.log; \
	$(MAKE) --no-print-directory types >$$told 2>&1 & types=$$!; \
	trap 'kill $$types 2>/dev/null; exit 1' INT TERM HUP; \
	for part in lint test-models test-server compiled; do \
		$(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	done; \
	wait $$types || failed="$$failed types"; types=; cat $$told; \
	python -m pytest -n $(WORKERS) --dist worksteal --durations=25 --durations-min=5; tests=$$?; \
	if test $$tests -eq 1; then \
		echo "make: what failed above once more, one test at a time" >&2; \
		python -m pytest -n 0 --last-failed --last-failed-no-failures none --maxfail 10; tests=$$?; \
	fi; \
	test $$tests -eq 0 || status=1; \
	test -z "$$failed" || { echo "make: failed before the tests, see above:$$failed" >&2; status=1; }; \
	exit $$status

# What each process of the tests would otherwise compile for itself, all of them where Python may write nothing down.
compiled: env
	@$(IN_ENV) export PYTHONDONTWRITEBYTECODE=; python -m compileall -q agent tools || true; \
	python -m pytest -p no:cacheprovider --collect-only -qq >/dev/null 2>&1 || true

test-quick: env ## only the tests that need no model and little time
	@$(IN_ENV) python -m pytest -n $(WORKERS) -m "not real and not slow"

lint: env ## ruff, rules and format
	@$(IN_ENV) ruff check . && ruff format --check .

types: env ## pyright
	@$(IN_ENV) pyright

format: env ## let ruff rewrite what it can
	@$(IN_ENV) ruff check --fix . && ruff format .

clean: ## remove what was made here; models, sessions and settings stay
	rm -rf $(VENV) .demo build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
