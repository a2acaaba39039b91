# Two commands are enough: `make study` and `make test`. Each makes .venv and installs the lock if need be.
PYTHON ?= python3.11
BIN := .venv/bin
RUNS := data/runs
# exactly this one: an open range takes the registry's newest build, gigabytes of CUDA with it
TORCH := torch==2.13.0
# compiled once, not by every process of the tests, also where the environment says otherwise
export PYTHONDONTWRITEBYTECODE :=
# the last that run on Python 3.11.2, Debian 12's
OLD_ENOUGH := 'pymdown-extensions<13' 'soupsieve<3'

.PHONY: study notebooks lab tools test test-slow test-extras test-random test-clusters gpu lint docs bench lock lock-clusters clean

.venv/.installed: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(shell command -v $(PYTHON) || command -v python3) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

study: .venv/.installed ## run notebook 01 headless; studies and reports go to data/runs
	$(BIN)/python -m workbench notebook notebooks/01_first_study.ipynb

notebooks: .venv/.installed ## every notebook, headless at the smallest scale; kept in data/runs
	for notebook in notebooks/*.ipynb; do \
		echo "$$notebook" && $(BIN)/python -m workbench notebook "$$notebook" || exit 1; done

lab: .venv/.installed ## open the first notebook in JupyterLab, on loopback, with a token; as root with LAB=--allow-root
	$(BIN)/jupyter lab --ServerApp.ip=127.0.0.1 $(LAB) notebooks/01_first_study.ipynb

tools: ## Chromium and node for the tests of what runs in a page, installed where that takes no password
	@.ci/tools

# four tests at a time, for many wait; those of a file one after another: they share clusters, browsers and studies
PYTEST := $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

test: .venv/.installed tools ## everything that fits in minutes
	$(PYTEST)

# a part of them: make test-slow SLOW=tests/cli
test-slow: .venv/.installed tools ## what takes longer, every notebook among it
	$(PYTEST) -m slow --timeout=3600 $(SLOW)

test-extras: .venv/.installed tools ## what is skipped without marimo, MiniGrid, rliable and SMAC, in an environment of its own
	test -x build/extras/bin/python || $(BIN)/python -m venv build/extras
	build/extras/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	build/extras/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[extras-test]' $(TORCH)
	build/extras/bin/python -m pytest -m 'not clusters' -k 'marimo or minigrid or rliable or smac' tests/analysis tests/algos tests/browser

test-random: .venv/.installed ## the property tests with examples never tried before
	$(PYTEST) --hypothesis-profile=random $$(grep -rl 'from hypothesis' tests --include='test_*.py')

lint: .venv/.installed ## style, types, floors, stripped notebooks, the front end as it is sent
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/nbstripout --verify notebooks/*.ipynb
	$(BIN)/oxlint --deny-warnings tests/viz/dashboard/front
	mkdir -p build && $(BIN)/python -c 'from workbench.viz.dashboard.front import CODE; print(CODE)' > build/front.js
	$(BIN)/oxlint --deny-warnings --no-ignore build/front.js workbench/viz/dashboard/front/boot.js

docs: .venv/.installed ## the documentation site, in build/site; a warning is an error. A test builds it too
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open build/site/index.html; its search needs a server: $(BIN)/python -m http.server -b 127.0.0.1 -d build/site"

.venv/.bench: .venv/.installed requirements-bench.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	touch $@

bench: .venv/.bench ## every benchmark, each printing JSON
	for script in benchmarks/*.py; do echo "$$script" && $(BIN)/python "$$script" || exit 1; done

# where torch for CUDA is another Python's: make gpu GPU_PYTHON=python3
GPU_PYTHON ?= $(BIN)/python
gpu: $(if $(filter $(BIN)/python,$(GPU_PYTHON)),.venv/.installed) ## on a machine with a GPU: what needs one, tested, measured, kept in data/
	$(GPU_PYTHON) -m pytest -q -n 8 -m 'not slow' tests/algos/rl tests/cluster/test_gpus.py
	$(GPU_PYTHON) -m workbench reproduce ga3c-gpu --out $(or $(OUT),data)

.venv/.clusters: .venv/.installed requirements-clusters.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-clusters.lock
	touch $@

test-clusters: .venv/.clusters ## SLURM, SSH, object stores on this machine: Debian, as root; says so where not
	@.ci/clusters
	$(PYTEST) -m 'clusters and not slow' tests/test_environment.py tests/cluster tests/clusters tests/paper/ba3c

lock: ## resolve the newest versions the ranges allow, torch excepted, in an environment of its own
	rm -rf build/lock && $(or $(shell command -v $(PYTHON)),python3) -m venv build/lock
	build/lock/bin/python -m pip install --quiet $(TORCH) setuptools
	build/lock/bin/python -m pip install --quiet --no-build-isolation -e '.[dashboard,dev,docs,test]' $(TORCH) $(OLD_ENOUGH)
	build/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip | sed s/+cpu// > requirements.lock
	build/lock/bin/python -m pip install --quiet --no-build-isolation -e '.[bench]' -c requirements.lock
	echo '-r requirements.lock' > requirements-bench.lock
	build/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip | sed s/+cpu// | grep -vxFf requirements.lock >> requirements-bench.lock
	$(MAKE) lock-clusters

# botocore wants an older dateutil than the lock has, so nothing is held to what is there but the ranges
lock-clusters: ## the same for what the tests of clusters need besides, and no more
	rm -rf build/lock && $(or $(shell command -v $(PYTHON)),python3) -m venv build/lock
	build/lock/bin/python -m pip install --quiet -r requirements.lock
	build/lock/bin/python -m pip install --quiet --no-build-isolation -e '.[test,clusters,clusters-test]' $(TORCH)
	build/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip | sed s/+cpu// > requirements-clusters.lock

clean:
	rm -rf .venv build $(RUNS)
