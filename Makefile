# Two commands matter: `make demo` shows the main job, `make test` runs every test. Both install what they need.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# The collector is built once for each builder.yaml; tests that need it are skipped where it was not.
BUILDER    := go.opentelemetry.io/collector/cmd/builder@v0.165.0
COLLECTOR  := $(HOME)/.cache/ragotel/collector/$(shell sha256sum collector/builder.yaml | cut -c1-16)

.PHONY: install demo test bench faults soak fuzz lint format docs collector audit clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/ragotel demo

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

# Each target of fuzz/ for so long; what breaks is in fuzz/found/. fuzz/README.md says what must hold.
MINUTES ?= 10
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3.0'
	$(BIN)/python fuzz/run.py --minutes $(MINUTES)

# Some twenty minutes, and half an hour: by hand.
faults: $(STAMP)
	$(BIN)/python benchmarks/faults.py

soak: $(STAMP)
	$(BIN)/python benchmarks/soak.py

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

collector: $(COLLECTOR)/otelcol-ragotel

$(COLLECTOR)/otelcol-ragotel:
	mkdir -p $(COLLECTOR)/sources
	CGO_ENABLED=0 go run $(BUILDER) --config collector/builder.yaml --skip-strict-versioning \
		--output-path=$(COLLECTOR)/sources
	mv $(COLLECTOR)/sources/otelcol-ragotel $@
	rm -rf $(COLLECTOR)/sources

docs: $(STAMP)
	$(BIN)/python docs/generate.py

# Asks the public advisories about every version installed; without the network it fails and says so.
audit: $(STAMP)
	$(BIN)/python -m pip check
	$(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.audit/bin/pip-audit --strict --skip-editable --path $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

clean:
	rm -rf $(VENV) .audit build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
