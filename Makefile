# Two commands matter: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-long lint types format clean system-packages

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[server]'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/.base  ## replay four weeks, live through an incident; KEEP=1 stays up
	$(BIN)/surefoot demo $(if $(KEEP),--keep)

test: $(VENV)/.dev system-packages lint types  ## everything that must be green
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not long' $(ARGS)

test-long: $(VENV)/.dev system-packages  ## soaks and hundreds of kills
	$(BIN)/python -m pytest -m long --timeout 3600 $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

system-packages:  ## Prometheus, Alertmanager and Chromium: the real parts that tests use
	./scripts/system-packages

clean:
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
