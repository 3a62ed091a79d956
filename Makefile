# Everything a newcomer needs: `make` lists the commands.  The first one makes .venv and installs.

VENV := .venv
BIN := $(VENV)/bin
PACKAGES := broker feeds joins templates xpath_eval xscl
LOOPS_OF := joins.sequences.lockstep joins.sequences.counting joins.similarity joins.memory \
	joins.signature
LOOPS := $(shell grep -rl --include='*.py' 'templates.compil' joins templates)
FIND_PYTHON := for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$python >/dev/null 2>&1 || continue; \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	echo $$python; break; done
# pip compiles on one processor, and the tests of what it installs as well.
installed = $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-compile \
	--editable $(1) && \
	{ $(BIN)/python -m compileall -q -j 0 -x '/tests/' $(VENV)/lib >/dev/null 2>&1 || true; }

.DEFAULT_GOAL := help
.PHONY: help install demo test soak lint format bench docs clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

install: $(VENV)/.runtime ## set up .venv with the broker in it
	@echo "done; go on with: . $(BIN)/activate"

demo: $(VENV)/.runtime ## show the whole broker at work on example feeds (one to two minutes)
	@$(BIN)/xscl demo

test: $(VENV)/.dev $(VENV)/java-classes $(VENV)/compiled-loops ## run all tests
	@# Once, and not by each process that runs tests.
	@$(BIN)/python -m compileall -q $(PACKAGES)
	@PYTHONPATH=. $(BIN)/python tests/support/readied.py $(PACKAGES) || true
	@$(BIN)/python -m pytest -n auto --dist loadfile $(ARGS)

soak: $(VENV)/.dev ## search for faults for some hours; ARGS="--scale 0.1 --seed 7"
	@$(BIN)/python tests/soak.py $(ARGS)

lint: $(VENV)/.dev ## check format, style, types and the floors between packages
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code and sort its imports
	@$(BIN)/ruff check --select I --fix --quiet .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev ## measure documents per second against the number of queries
	@$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.dev ## build the documentation as a site, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean: ## remove .venv and caches
	@rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@python="$$($(FIND_PYTHON))"; \
	if [ -z "$$python" ]; then \
	  echo "make: no Python 3.11 or newer found; install one, or say which: make PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	"$$python" -m venv $(VENV) || { \
	  echo "make: '$$python -m venv' failed; on Debian and Ubuntu: apt install python3-venv" >&2; \
	  rm -rf $(VENV); exit 1; }

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
	@echo "Installing into $(VENV). Once, and it takes a few minutes: PySpark alone is 450 MB." >&2
	@$(call installed,.)
	@touch $@

# Tests start Spark some twenty times; Java reads its classes once for all of them.  It passes over
# an archive that was written with another class path, so it is written anew with what says that.
$(VENV)/java-classes: $(VENV)/.dev broker/pipeline/jvm.py tests/support/class_archive.py
	@rm -f $@
	@PYTHONPATH=. $(BIN)/python tests/support/class_archive.py $@ || true

# Processes that run tests would each compile what is not in files yet.  Without numba there is
# nothing to compile, and what cannot be compiled is told by the tests.
$(VENV)/compiled-loops: $(VENV)/.dev $(LOOPS)
	@printf '%s\n' $(LOOPS_OF) | xargs -P 2 -I module $(BIN)/python -m module.compilation \
		>/dev/null 2>&1 || true
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "Installing into $(VENV). Once, and it takes a few minutes: PySpark alone is 450 MB." >&2
	@$(call installed,'.[dev]')
	@touch $(VENV)/.runtime $@
