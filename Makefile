# Everything a fresh machine needs is set up by the target that needs it.
# PYTHON chooses the interpreter (3.11 to 3.13, with venv).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch comes first and pinned: a range would take a build of several gigabytes.
TORCH := $(shell grep '^torch==' constraints.txt)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Read by tests alone, as references: what they depend on (torchvision, triton) is not needed for that.
WITHOUT_DEPENDENCIES := timm flash-linear-attention fla-core

# One test process a core, each of one thread: small tensors gain nothing from more.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n logical

.PHONY: train test test-slow test-browser test-processors test-kills test-bad-input lint format docs wheel clean

train: $(VENV)/.installed  ## train the copy task
	$(BIN)/python -m mha_lab train +experiment=copy

test: $(VENV)/.installed-dev  ## the fast tests
	$(PYTEST)

test-slow: $(VENV)/.installed-dev  ## the slow tests
	$(PYTEST) -m "slow and not browser" --timeout 900

test-browser: $(VENV)/.installed-dev  ## the tests that drive headless Chromium
	$(BIN)/python -m pytest -m browser

test-processors: $(VENV)/.installed-dev  ## the numeric tests as other processors compute them
	$(BIN)/python tests/processors.py

test-kills: $(VENV)/.installed-dev  ## runs that are killed, resumed and compared
	$(BIN)/python tests/reliability/kill.py kills=12

test-bad-input: $(VENV)/.installed-dev  ## odd values for every key, and damaged runs
	$(BIN)/python tests/reliability/bad_input.py n=150

lint: $(VENV)/.installed-dev  ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev  ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs  ## the site, into build/site: strict, links checked, without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/site is written; to read it: $(BIN)/python -m http.server -d build/site"

wheel: $(VENV)/.installed-dev  ## dist/mha_lab-*.whl, with the configs inside
	rm -rf build dist
	$(BIN)/python -m build --wheel

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14) and "mha_lab needs Python 3.11 to 3.13, this is " + sys.version.split()[0] + "; choose one with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing mha_lab into $(VENV) (some minutes the first time)"
	$(PIP_INSTALL) $(TORCH)
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP_INSTALL) -e '.[docs]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP_INSTALL) -e '.[dev]'
	$(PIP_INSTALL) --no-deps $(WITHOUT_DEPENDENCIES)
	touch $@

clean:  ## remove the environment and what was built
	rm -rf $(VENV) build dist *.egg-info
