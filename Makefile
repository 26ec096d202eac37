# One word runs everything. PYTHON is the environment's: activate one, or say PYTHON=.venv/bin/python.
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help venv check types test cov api bench all

help:  ## print these targets
	@sed -n 's/^\([a-z-]*\):.*## */\1\t/p' $(firstword $(MAKEFILE_LIST))

venv:  ## make .venv with everything a developer needs
	python3 -m venv .venv
	.venv/bin/pip install -e ".[dev]"

check:  ## lint, formatting and types (ruff, mypy, pyright)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pyright --pythonpath "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	$(PYTHON) -m pyright --pythonpath "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --verifytypes gotato_py --ignoreexternal >/dev/null \
		|| { echo "gotato_py has public names without a type: make types tells which" >&2; exit 1; }

types:  ## how complete the types of each package are, by pyright
	@for package in gotato_py gotato_gateway gotato_session gotato_toolregistry gotato_testkit gotato_cli; do \
		$(PYTHON) -m pyright --pythonpath "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --verifytypes $$package --ignoreexternal || exit 1; \
	done

test:  ## the test suite
	$(PYTHON) -m pytest

cov:  ## the test suite under branch coverage, with its threshold
	$(PYTHON) -m coverage erase
	$(PYTHON) -m coverage run -m pytest
	$(PYTHON) -m coverage combine --quiet
	$(PYTHON) -m coverage report

api:  ## write down what is public (tests/public_api.txt)
	$(PYTHON) tests/public_api.py

bench:  ## every benchmark, one after another
	@set -e; for file in benchmarks/bench_*.py; do \
		if [ -e "$$file" ]; then echo "== $$file"; $(PYTHON) "$$file"; else echo "no benchmarks yet"; fi; \
	done

.PHONY: real-model
real-model:  ## an agent with a real, small model on this machine (builds a server: minutes, and a C++ compiler)
	$(PYTHON) benchmarks/real_model.py

.PHONY: litellm
litellm:  ## the adapters against a LiteLLM proxy with mocks (installs it into this environment: 700 MB)
	$(PYTHON) -m pip install -e ".[test,litellm]"
	$(PYTHON) -m pytest tests/gateway/test_litellm.py

.PHONY: mutation
mutation:  ## small faults in the kernel, one at a time, that the tests have to find (MODULES="_loop _batch"; long)
	$(PYTHON) -m tests.mutation $(MODULES)

.PHONY: machine
machine:  ## the agent's state machine, a million steps of it (a night; PARTS=1 for ten thousand, JOBS=2 for two at a time)
	seq $(or $(PARTS),100) | xargs -P $(or $(JOBS),1) -I{} env HYPOTHESIS_PROFILE=nightly MACHINE_PART={} \
		$(PYTHON) -m pytest -q -p no:logging tests/kernel/test_machine.py  # captured records would hold each run in memory

.PHONY: crash
crash:  ## processes killed at any moment, on each store (KILLS=10000)
	CRASH_KILLS=$(or $(KILLS),10000) $(PYTHON) -m pytest tests/session/crash

all: check test cov  ## check, test and cov
