# `make serve` on a fresh machine: Python environment, packages, weights, then the whole stack. `make test`: everything
# that is checked. Each step leaves a stamp, so the second start only starts.

PYTHON ?= python3
# Where torch comes from when its plain name would bring a CUDA build (scripts/install_torch.py decides).
TORCH_VERSION = 2.13.0
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PROFILE ?= deploy/profiles/cpu.yaml

VENV = .venv
BIN = $(VENV)/bin
STAMPS = $(VENV)/stamps

.DEFAULT_GOAL := help
.PHONY: help serve test lint weights clean

help:
	@echo "make serve   environment, packages, weights, then the whole stack (Ctrl-C ends it)"
	@echo "make test    the same, then lint, types and all tests"
	@echo "make lint    ruff and mypy only"
	@echo "make clean   remove the environment and caches; weights stay"

serve: $(STAMPS)/package
	$(BIN)/offhook up --profile $(PROFILE)

test: $(STAMPS)/dev lint weights
	$(BIN)/python -m pytest

lint: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

weights: $(STAMPS)/package
	$(BIN)/offhook models pull --profile $(PROFILE)

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "offhook needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
		"Another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/torch: $(STAMPS)/venv scripts/install_torch.py
	$(BIN)/python scripts/install_torch.py $(TORCH_VERSION) $(TORCH_INDEX)
	@touch $@

$(STAMPS)/package: $(STAMPS)/torch pyproject.toml
	$(BIN)/python -m pip install --editable .
	@touch $@

# pytest-audioeval carries recorded speech; its own dependencies, which the recordings do not need, compile C code.
$(STAMPS)/dev: $(STAMPS)/package
	$(BIN)/python -m pip install --editable '.[dev]'
	$(BIN)/python -m pip install --no-deps pytest-audioeval==0.1.3
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
