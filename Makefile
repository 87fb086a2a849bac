# make run    sets up what running needs and starts a demo space
# make test   sets everything up and runs every test
# make web    builds the page that the gateway serves and the compiled part, where their sources have changed
# make docs   builds the documentation site into build/site
# make dist   builds the source archive, the wheel of this platform and the pure wheel into dist
# make check  format, lint, types, imports and the quick tests: before a commit

VENV := .venv
BIN := $(VENV)/bin
RUN_READY := $(VENV)/.run-ready
READY := $(VENV)/.ready
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix web --silent

# Half as many again as there are cores: many tests wait. Not those with processes and pages, which others hold up.
WORKERS := $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal

# These measure, and want the machine to themselves.
MEASURES := tests/page/test_page_speed.py

.PHONY: run test check quick tests-ready web lint docs dist format schemas bench constraints clean

# What is tested is compiled once, not by each of the hundreds of processes that tests start.
test quick: export PYTHONDONTWRITEBYTECODE :=

# Ctrl-C is how it ends, and no error.
run: $(RUN_READY)
	@trap : INT; $(BIN)/python scripts/demo.py || [ $$? -eq 130 ]

test: $(READY) tests-ready lint
	$(NPM) test
	$(PYTEST) -m "not e2e"
	$(BIN)/pytest -n auto --dist worksteal -m e2e --ignore $(MEASURES)
	$(BIN)/pytest $(MEASURES)

check: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line lint quick

quick: $(READY) web
	$(PYTEST) -m "not slow and not e2e" -o asyncio_debug=false
	$(NPM) test

web: $(READY)
	@$(BIN)/python hatch_build.py

tests-ready: $(READY)
	@scripts/setup-tests $(VENV)

lint: $(READY) web docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run check

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/zensical build --strict

dist: $(READY)
	@rm -rf dist
	$(BIN)/hatchling build -t sdist -t wheel
	MEW_PURE=1 $(BIN)/hatchling build -t wheel

schemas: $(READY)
	$(BIN)/python scripts/schemas.py

bench: $(READY)
	$(BIN)/python -m bench --json bench/results/latest.json

constraints: $(READY)
	$(BIN)/pip freeze --exclude-editable --exclude mew-protocol | grep -v -e '^-e' -e ' @ ' > constraints.txt

clean:
	rm -rf $(VENV) build dist bench/results bench/candidates/node/node_modules tests/servers/node_modules web/node_modules src/mew/page/static .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(RUN_READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup $(VENV) run
	@touch $@

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup $(VENV) dev
	@touch $@ $(RUN_READY)
