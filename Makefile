# Each target sets up what it needs. ARGS goes to the program behind it:
#   make lab ARGS="--no-browser --port 8890"      make test ARGS="-k mask"
PYTHON ?= python3
ARGS ?=
# NEWEST=1 installs the newest versions that pyproject.toml admits instead of the exact pins.
NEWEST ?=

RUN := PATH="$(CURDIR)/.venv/bin:$$PATH"
# Two processes that each spin two OpenMP threads slow each other tenfold: checks run on one.
ONE_THREAD := OMP_NUM_THREADS=1 MPLBACKEND=agg
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help lab test test-quick lint format notebooks figures benchmarks pins clean

help:
	@echo "make lab          JupyterLab with the lessons"
	@echo "make test         the whole suite: package, notebooks, browser"
	@echo "make test-quick   the suite without notebooks and browser"
	@echo "make lint         style of code and notebooks; make format mends it"
	@echo "make notebooks    run all notebooks again and store their outputs"
	@echo "make figures      draw the README's pictures again"
	@echo "make benchmarks   measure again what the README claims"
	@echo "make pins         write constraints.txt anew from what is installed"

lab: .venv/.lab
	cd notebooks && $(RUN) jupyter lab $(AS_ROOT) $(ARGS)

test: .venv/.test
	$(RUN) $(ONE_THREAD) python -m pytest $(ARGS)

test-quick: .venv/.test
	$(RUN) $(ONE_THREAD) python -m pytest tests --ignore=tests/notebooks --ignore=tests/browser $(ARGS)

lint: .venv/.test
	$(RUN) ruff check . && $(RUN) ruff format --check .

format: .venv/.test
	$(RUN) ruff check --fix . && $(RUN) ruff format .

notebooks: .venv/.test
	$(RUN) OMP_NUM_THREADS=1 python tools/notebooks.py $(ARGS)

figures: .venv/.lab
	$(RUN) $(ONE_THREAD) python tools/figures.py

benchmarks: .venv/.lab
	$(RUN) python benchmarks/import_time.py
	$(RUN) python benchmarks/attention.py

pins: .venv/.test
	$(RUN) python tools/pins.py

clean:
	rm -rf .venv dist build .pytest_cache .ruff_cache .hypothesis

# Stamps: what is installed already is not installed again.
.venv/.lab: requirements.txt constraints.txt pyproject.toml tools/install.py
	@$(PYTHON) tools/install.py $(if $(NEWEST),--newest lab,requirements.txt)
	@touch $@

.venv/.test: requirements-test.txt .venv/.lab
	@$(PYTHON) tools/install.py $(if $(NEWEST),--newest test,requirements-test.txt)
	@touch $@
