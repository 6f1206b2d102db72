# Sets up an environment of its own in .venv (uv where it is found, pip otherwise) and runs
# the project in it. `make help` lists what can be made.

PYTHON ?= python3
VENV ?= .venv
# Tests that start browsers and processes wait for these much of their time: three of them keep
# two cores busy.
WORKERS ?= 3
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check docs bench lock clean machine

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 14

demo: $(VENV)/.demo machine  ## Set up, run LocalSites with oracle, nop and browser-use, judge, rank.
	$(BIN)/bubench demo

test: $(VENV)/.dev machine  ## Set up and run every test but the slow ones.
	$(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist worksteal

test-all: $(VENV)/.dev machine  ## Set up and run every test.
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: $(VENV)/.dev  ## Lint, types, layers, sizes, docs and the embedded benchmark's files.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python tools/gates.py
	$(BIN)/python benchmarks/LocalSites/build.py --check
	$(BIN)/mkdocs build --strict --quiet --site-dir build/site

docs: $(VENV)/.dev  ## Serve the documentation.
	$(BIN)/mkdocs serve

bench: $(VENV)/.dev machine  ## Measure what benches/ measures.
	for bench in benches/[a-z]*.py; do $(BIN)/python $$bench || exit 1; done

# What is kept outside the environment: Chromium, the environment of browser-use, and the
# sites' data in the user's cache.
machine: | $(VENV)/.demo
	@$(BIN)/bubench doctor --install-chromium --quiet
	@$(BIN)/bubench agents install browser-use --quiet
	@$(BIN)/python -c 'from browseruse_bench.sites import docs; docs.documentation()'

lock: $(VENV)/.dev  ## Resolve the dependencies anew (needs uv).
	uv pip compile --universal --generate-hashes --no-header --no-annotate --quiet --upgrade \
		pyproject.toml --extra demo -o locks/demo.txt
	uv pip compile --universal --generate-hashes --no-header --no-annotate --quiet --upgrade \
		-c locks/demo.txt pyproject.toml --extra demo --extra factory --extra models --extra plots --group pyproject.toml:dev -o locks/dev.txt
	cd browseruse_bench/agents/browser_use && uv pip compile --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --quiet --upgrade requirements.in \
		--override overrides.txt -o requirements.txt

clean:  ## Remove the environment and what was built.
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache

$(BIN)/python:
ifneq ($(UV),)
	uv venv --quiet --python $(PYTHON) $(VENV)
else
	$(PYTHON) -m venv $(VENV)
endif

ifneq ($(UV),)
PIP_INSTALL = uv pip install --quiet --python $(BIN)/python
else
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

# The byte code is compiled at once: some machines forbid Python to write it later, and every
# start of the command would then compile it again.
define install
	@echo "installing $(1) into $(VENV) ..."
	$(PIP_INSTALL) --require-hashes -r $(1)
	$(PIP_INSTALL) --no-deps -e .
	$(BIN)/python -m compileall -q browseruse_bench $(VENV)/lib/python*/site-packages/click
	@touch $@
endef

$(VENV)/.demo: locks/demo.txt pyproject.toml | $(BIN)/python
	$(call install,locks/demo.txt)

$(VENV)/.dev: locks/dev.txt pyproject.toml | $(VENV)/.demo
	$(call install,locks/dev.txt)
