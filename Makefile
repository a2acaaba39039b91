# Two commands are enough: `make study` and `make test`. Each makes .venv and installs the lock if need be.
PYTHON ?= python3.11
BIN := .venv/bin
RUNS := data/runs

.PHONY: study lab test test-slow lint bench lock clean

.venv/.installed: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(shell command -v $(PYTHON) || command -v python3) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

study: .venv/.installed ## run notebook 01 headless; studies and reports go to data/runs
	$(BIN)/python -m workbench notebook notebooks/01_first_study.ipynb

lab: .venv/.installed ## open the first notebook in JupyterLab, on loopback, with a token
	$(BIN)/jupyter lab --ServerApp.ip=127.0.0.1 notebooks/01_first_study.ipynb

test: .venv/.installed ## everything that fits in minutes
	$(BIN)/python -m pytest

test-slow: .venv/.installed ## what takes longer
	$(BIN)/python -m pytest -m slow --timeout=3600

lint: .venv/.installed ## style, types, floors, stripped notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/nbstripout --verify notebooks/*.ipynb

.venv/.bench: .venv/.installed requirements-bench.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	touch $@

bench: .venv/.bench ## every benchmark, each printing JSON
	for script in benchmarks/*.py; do echo "$$script" && $(BIN)/python "$$script" || exit 1; done

lock: .venv/.installed ## resolve the newest versions the ranges allow, keeping torch
	$(BIN)/python -m piptools compile -q --strip-extras --no-emit-index-url --no-emit-find-links --no-header \
	    --no-annotate --all-build-deps --extra dashboard,dev,test -o requirements.lock pyproject.toml

clean:
	rm -rf .venv build $(RUNS)
