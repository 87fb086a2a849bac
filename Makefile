# make run    sets everything up and starts a demo space
# make test   sets everything up and runs every test
# make check  format, lint, types, imports and the quick tests: before a commit

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test check quick lint format schemas stub bench constraints clean

run: $(READY)
	@$(BIN)/python scripts/demo.py

test: $(READY) lint
	$(BIN)/pytest -n auto -m "not e2e"
	$(BIN)/pytest -m e2e

check: $(READY) lint quick

quick: $(READY)
	$(BIN)/pytest -n auto -m "not slow and not e2e"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

stub: $(READY)
	$(BIN)/python scripts/sync_stub.py

schemas: $(READY)
	$(BIN)/python scripts/schemas.py

bench: $(READY)
	$(BIN)/python -m bench

constraints: $(READY)
	$(BIN)/pip freeze --exclude-editable --exclude mew-protocol | grep -v -e '^-e' -e ' @ ' > constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt scripts/setup
	scripts/setup $(VENV)
	@touch $@
