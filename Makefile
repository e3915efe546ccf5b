# What one types in this project; `make` alone lists it. Works with GNU make 3.81 and newer.
#
#   make PYTHON=python3.12 setup     takes that Python, and no other
#   make LOCK_FLAGS=--upgrade lock   moves every pin to its newest release

PYTHON ?= python3
UV ?= uv
LOCK_FLAGS ?=
BIN := .venv/bin
SETUP = $(PYTHON) scripts/setup_env.py $(if $(findstring file,$(origin PYTHON)),,--this-python)
LOCK = $(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock" $(LOCK_FLAGS)

.DEFAULT_GOAL := help
.PHONY: help setup dev demo demo-stop test check golden live docs bench lock clean

help: ## List these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1#\2/p' Makefile | \
		awk -F'#' '{ printf "%-17s %s\n", $$1, $$2 }'

setup: ## Make .venv with the locked packages and the bringup command
	@$(SETUP)

dev: ## The same, with what tests and checks need
	@$(SETUP) --dev

demo: setup ## Bring up a small real server on this machine, without a key
	@$(BIN)/bringup demo --brain playbook --mode auto

demo-stop: setup ## Stop what the demo left running
	@$(BIN)/bringup demo --stop

test: dev ## Run the tests
	$(BIN)/python -m pytest

check: dev ## Lint, formatting, types, house rules, docs
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q tests/test_house_rules.py tests/test_docs.py

golden: dev ## Record the transcripts again by real runs (minutes); review the diff
	$(BIN)/python -m tests.lab.record
	$(BIN)/python -m tests.lab.picture
	$(BIN)/python -m tests.lab.prompts

live: dev ## Let a small real model drive 20 runs (tens of minutes): it may do no harm
	$(BIN)/python -m tests.live

docs: dev ## Write the generated pages anew
	$(BIN)/python -m agent.schema_doc docs/transcript.md
	$(BIN)/python -m agent.tools_doc docs/tools.md
	$(BIN)/python -m agent.modules_doc docs/architecture.md

bench: dev ## Measure this project's own speed
	$(BIN)/python -m tests.bench

lock: ## Renew requirements/*.txt from pyproject.toml (needs uv)
	$(LOCK) --group install --output-file requirements/runtime.txt
	$(LOCK) --group install --group dev --constraint requirements/runtime.txt \
		--output-file requirements/dev.txt

clean: ## Remove .venv, caches and builds
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
	find agent tools tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
