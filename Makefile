# The commands of this project; `make` alone lists them.
#
#   make lab LESSON_LANG=ko
#   make lab PORT=9999 LAB_ARGS="--no-browser --ip=0.0.0.0"
#   make test ARGS="-k sage -x"
#   make test ALL=1
#   make bench ARGS="--size S --tasks sample,gather --peer PATH"

VENV      ?= .venv
PYTHON    ?=
PORT      ?=
LAB_ARGS  ?=
ARGS      ?=
JOBS      ?= 3
ALL       ?=
LESSON_LANG ?= $(or $(filter ko zh,$(shell printf %.2s "$${LC_ALL:-$$LANG}")),en)

BIN := $(VENV)/bin
RUN := $(BIN)/python
# Of this environment alone: JupyterLab's question about news would cover the first lesson, and the
# list of the lessons would be shown as its source.
SETTINGS := $(VENV)/share/jupyter/lab/settings/overrides.json
# Jupyter does not start as root unless told to: in a container there is no one else.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# One notebook stays on one worker (loadfile): its cells share a kernel. Each worker keeps to one
# thread: OpenMP threads that wait for a busy core are slower than none. Tests of processes wait for
# a quarter of their time, so three workers keep two cores busy. Where Python is told to store no
# bytecode, as in many containers, each of a thousand processes would compile the same modules.
# A process that has used a GPU cannot fork, and many tests do: they see none, but a pretend device.
PYTEST := $(if $(ALL),GNNLAB_TEST_ALL=1) OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= \
	$(RUN) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --nbval-cell-timeout 300
# What only programs written for DGL need: tests/test_dgl.py has a few tests of it for `make test`.
DGL := gnnlab/compat tests/compat
HAS_GPU := import sys, torch; torch.cuda.is_available() or sys.exit("make: torch finds no GPU of NVIDIA or \
	AMD here (see nvidia-smi, and python -m torch.utils.collect_env). make test runs the same tests on a \
	pretend device")
HAS_PYG := import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch_geometric"))

.DEFAULT_GOAL := help
.PHONY: help lab lessons test test-dgl test-gpu test-knobs test-clients test-backends check bench site clean programs
.DELETE_ON_ERROR:

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

lab: $(VENV)/.lab $(SETTINGS) ## open the lessons in JupyterLab (LESSON_LANG=en, ko or zh; PORT=…, LAB_ARGS=…)
	$(if $(filter en ko zh,$(LESSON_LANG)),,$(error LESSON_LANG is $(LESSON_LANG); it must be en, ko or zh))
	$(BIN)/jupyter lab --notebook-dir=notebooks --LabApp.default_url=/lab/tree/$(LESSON_LANG)/README.md $(AS_ROOT) \
		$(if $(PORT),--port=$(PORT) --ServerApp.port_retries=0) $(LAB_ARGS)

lessons: $(VENV)/.test ## run every lesson in every language, without a browser
	$(PYTEST) --nbval notebooks $(ARGS)

# Code cells and outputs of a lesson are the same in all languages (tests/notebooks/test_twice.py).
test: $(VENV)/.test $(if $(CI),$(VENV)/.pyg $(VENV)/.serve $(VENV)/.site $(VENV)/.triton) programs ## run the tests, the examples in the docstrings and the English lessons (ALL=1: at length)
	$(PYTEST) --doctest-modules --doctest-ignore-import-errors --nbval gnnlab tests notebooks/en \
		--ignore=tests/backends --ignore-glob='gnnlab/*/*triton*.py' \
		$(if $(CI)$(ALL),,$(DGL:%=--ignore=%)) \
		$(shell $(RUN) -c '$(HAS_PYG)' || echo --ignore=gnnlab/pyg) $(ARGS)

test-dgl: $(VENV)/.test ## run the tests of what only programs written for DGL need (in CI, make test runs them too)
	$(PYTEST) --doctest-modules $(DGL) $(ARGS)

test-gpu: $(VENV)/.test ## run the tests of GPUs on the GPU of this machine
	@$(RUN) -c '$(HAS_GPU)'
	$(RUN) -m pytest -m gpu tests $(ARGS)

test-knobs: $(VENV)/.test ## run the lessons with each setting at two other values (an hour)
	GNNLAB_TEST_KNOBS=1 OMP_NUM_THREADS=1 $(RUN) -m pytest tests/notebooks/test_knobs.py $(ARGS)

test-clients: $(VENV)/.test $(VENV)/.pyg $(VENV)-graphstorm/.done $(VENV)-libraries/.done ## run the tests of PyG, GraphStorm, MatGL, ALIGNN and DGL-LifeSci, which make test leaves out
	$(PYTEST) --doctest-modules gnnlab/pyg tests/pyg $(ARGS)
	GRAPHSTORM_VENV=$(VENV)-graphstorm LIBRARIES_VENV=$(VENV)-libraries OMP_NUM_THREADS=1 \
		$(RUN) -m pytest tests/clients $(ARGS)

# One after the other: each test has a cluster of three hosts, which are namespaces, so it needs root.
test-backends: $(VENV)/.test $(VENV)/.ray-jobs ## run the tests on Slurm and Ray, in three hosts on this machine (needs root)
	@PATH="$$PATH:/usr/sbin"; command -v slurmctld slurmd srun munged ip >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		echo "Installing Slurm; none of its services has to run." && apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends \
			slurmctld slurmd slurm-client munge iproute2 >/dev/null; } || \
		echo "make: Slurm is missing (Debian, Ubuntu: slurmctld slurmd slurm-client munge)" >&2
	OMP_NUM_THREADS=1 $(RUN) -m pytest tests/backends $(ARGS)

# Only the tests of `ray job submit` need what makes a cluster take jobs.
$(VENV)/.ray-jobs: $(VENV)/.ray
	@$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt "ray[default]"
	@touch $@

# torch with CUDA brings the version that it needs; its interpreter runs kernels on a CPU, too.
$(VENV)/.triton: $(VENV)/.test
	@$(RUN) -c 'import triton' 2>/dev/null || [ "$$(uname -sm)" != "Linux x86_64" ] || \
		$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps "triton==3.6.0"
	@touch $@

check: $(VENV)/.dev ## look for faults without running: style, types, imports, notebooks in step
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(RUN) notebooks/build.py --check
	$(RUN) -m pytest -q tests/test_levels.py

bench: $(VENV)/.lab ## measure this machine (ARGS="--size S --tasks sample,epoch --peer DIR")
	$(RUN) -m benchmarks run $(ARGS)

site: $(VENV)/.site ## build the site in build/site: lessons, guides, API reference, in three languages
	$(RUN) docs/site/build.py $(ARGS)

clean: ## remove the environment and every cache; data sets stay
	rm -rf $(VENV) $(VENV)-graphstorm .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/data build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +

# --- programs for the tests that log in to machines or open notebooks in a browser -----------

# Installed by root only in CI or in a container: elsewhere openssh-server would start a server. In
# CI also a font for figures in Korean and Chinese, whose tests are skipped without.
programs:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin"; missing=; \
	for each in sshd:openssh-server rsync:rsync chromium:chromium; do \
		command -v "$${each%:*}" >/dev/null || missing="$$missing $${each#*:}"; \
	done; \
	[ -z "$$CI" ] || fc-list :lang=ko 2>/dev/null | grep -q . || missing="$$missing fonts-noto-cjk"; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ [ -n "$$CI" ] || [ ! -d /run/systemd/system ]; }; then \
		echo "Installing$$missing: some tests log in to machines on 127.0.0.2, 127.0.0.3, use a browser or draw Korean text."; \
		apt-get -qq update; left=; \
		for package in $$missing; do \
			DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $$package \
				>/dev/null || left="$$left $$package"; \
		done; \
		missing=$$left; \
	fi; \
	[ -z "$$missing" ] || { \
		echo "make: missing:$$missing. Tests that log in to machines (openssh-server, rsync) or open" >&2; \
		echo "      notebooks in a browser (chromium) are skipped without. Debian, Ubuntu: sudo apt" >&2; \
		echo "      install$$missing; Fedora: sudo dnf install$$missing; macOS has all but chromium." >&2; }

# --- the environment: made once, brought up to date when the pins change ---------------------

$(VENV)/.python:
	@python="$(PYTHON)"; \
	for name in python3.11 python3.12 python3.13 python3.14 python3; do \
		[ -n "$$python" ] && break; \
		$$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
			&& python=$$name; \
	done; \
	if [ -z "$$python" ]; then \
		echo "make: no Python 3.11 or newer with its venv module was found on PATH." >&2; \
		echo "      Found: $$(python3 --version 2>&1)." >&2; \
		echo "      Install one (Debian, Ubuntu: apt install python3.11-venv; macOS: brew install python@3.11;" >&2; \
		echo "      any system: conda env create -f environment.yml), or name it: make lab PYTHON=/path/to/python3.11" >&2; \
		exit 1; \
	fi; \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: $$python is $$($$python --version 2>&1); gnnlab needs Python 3.11 or newer." >&2; exit 1; }; \
	echo "$$python -m venv $(VENV)"; $$python -m venv $(VENV)
	@touch $@

$(SETTINGS): Makefile | $(VENV)/.lab
	@mkdir -p $(@D)
	@echo '{"@jupyterlab/apputils-extension:notification":' \
		'{"fetchNews": "false", "checkForUpdates": false},' \
		'"@jupyterlab/docmanager-extension:plugin":' \
		'{"defaultViewers": {"markdown": "Markdown Preview"}}}' > $@

# $(1): the extra to install; $(2): the extras that come with it
define environment
$(VENV)/.$(1): $(VENV)/.python pyproject.toml constraints.txt
	@echo "Installing gnnlab[$(1)] into $(VENV); the first time this takes minutes."
	@$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(1)]" || { \
		echo "make: pip could not install gnnlab[$(1)]; see its last lines above. Without a network, set" >&2; \
		echo "      PIP_INDEX_URL to a mirror; no matching version: constraints.txt has wheels for Python" >&2; \
		echo "      3.11 to 3.14 on Linux, macOS 14 (Apple silicon) and Windows (x86-64), here is" >&2; \
		echo "      $$$$($(RUN) -V) on $$$$(uname -sm): make clean, then make lab PYTHON=/path/to/python3.12" >&2; \
		exit 1; }
	@touch $$@ $(2:%=$(VENV)/.%)
endef
$(VENV)-graphstorm/.done: examples/graphstorm/install.sh constraints.txt | $(VENV)/.python
	@echo "Installing GraphStorm into $(VENV)-graphstorm; the first time this takes minutes."
	@PYTHON=$(RUN) sh examples/graphstorm/install.sh $(VENV)-graphstorm
	@touch $@

$(VENV)-libraries/.done: tests/clients/install.sh constraints.txt | $(VENV)/.python
	@echo "Installing DGL-LifeSci, MatGL and ALIGNN into $(VENV)-libraries; the first time this takes minutes."
	@PYTHON=$(RUN) sh tests/clients/install.sh $(VENV)-libraries
	@touch $@

$(eval $(call environment,lab))
$(eval $(call environment,test,lab))
$(eval $(call environment,pyg))
$(eval $(call environment,ray))
$(eval $(call environment,serve))
$(eval $(call environment,site))
$(eval $(call environment,dev,lab test pyg))
