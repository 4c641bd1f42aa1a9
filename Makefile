# Each target sets up what it needs. ARGS goes to the program behind it:
#   make lab ARGS="--no-browser --port 8890"      make test ARGS="-k mask"
PYTHON ?= python3
ARGS ?=
# NEWEST=1, in a fresh clone, installs the newest versions that pyproject.toml admits instead of the exact pins.
NEWEST ?=

PY := .venv/bin/python
# .venv/bin first on PATH, for programs that call others by name; ours are called by their interpreter, so that a broken
# environment fails instead of silently using another Python.
RUN := PATH="$(CURDIR)/.venv/bin:$$PATH"
# Two processes that each spin two OpenMP threads slow each other tenfold: checks run on one.
ONE_THREAD := OMP_NUM_THREADS=1 MPLBACKEND=agg
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# A teacher's course: make class COURSE=folder PRIVATE=folder; make grade SUBMISSIONS=folder REGRADE=anna
COURSE ?= course
PRIVATE ?=
SUBMISSIONS ?=
REGRADE ?=
# nbgrader lies apart from what learners use; see requirements-class.txt.
WITH_NBGRADER := PYTHONPATH="$(CURDIR)/.venv/class"

.PHONY: help lab test test-quick train class grade lint format notebooks book figures screenshot thumbnails benchmarks benchmarks-peers benchmarks-exchange pins clean

help:
	@echo "make lab          JupyterLab with the lessons"
	@echo "make test         the whole suite: package, notebooks, browser"
	@echo "make test-quick   the suite without notebooks, browser, classroom, and runs that are killed and resumed"
	@echo "make train        train a translator on the microworld, in minutes, and score it"
	@echo "make class        a course folder with the assignments as students get them; PRIVATE=folder for your own variants"
	@echo "make grade        SUBMISSIONS=folder: grade a class, each answer in a box of its own"
	@echo "make lint         style of code and notebooks; make format mends it"
	@echo "make notebooks    run all notebooks again and store their outputs"
	@echo "make book         the lessons as a site that needs no network: docs/_build/html"
	@echo "make figures      draw the README's first picture, whose tiny model is trained for it, and the figures for slides"
	@echo "make screenshot   take the README's picture of the attention explorer again; needs Chromium"
	@echo "make thumbnails   make the README's small pictures of the lessons again"
	@echo "make benchmarks   measure again what the README claims, and draw its second picture"
	@echo "make benchmarks-peers   speed beside other libraries; Multi30k: ARGS=\"--data FOLDER\""
	@echo "make benchmarks-exchange   our models in other engines: ONNX, Marian, CTranslate2; Multi30k: ARGS=\"--data FOLDER\""
	@echo "make pins         write constraints.txt anew from what is installed"

lab: .venv/.lab
	cd notebooks && $(RUN) ../$(PY) -m jupyterlab $(AS_ROOT) $(ARGS)

test: .venv/.test .venv/.class
	$(RUN) $(ONE_THREAD) $(WITH_NBGRADER) $(PY) -m pytest $(ARGS)

test-quick: .venv/.test .venv/.class
	$(RUN) $(ONE_THREAD) $(WITH_NBGRADER) $(PY) -m pytest tests --ignore=tests/notebooks --ignore=tests/browser --ignore=tests/book --ignore=tests/faults \
		--ignore=tests/classroom $(ARGS)

train: .venv/.lab
	$(RUN) $(PY) -m tinytransformer train --folder runs/microworld $(ARGS)
	@for split in test test_novel test_pronoun test_long; do \
		echo; $(RUN) $(PY) -m tinytransformer evaluate --model runs/microworld/model --corpus microworld --split $$split; \
	done

class: .venv/.class
	$(RUN) $(WITH_NBGRADER) $(PY) -m tinytransformer classroom --course "$(COURSE)" $(if $(PRIVATE),--private "$(PRIVATE)") $(ARGS)

grade: .venv/.class
	@test -n "$(SUBMISSIONS)" || { echo "Name the folder with the notebooks: make grade SUBMISSIONS=folder"; exit 1; }
	$(RUN) $(ONE_THREAD) $(WITH_NBGRADER) $(PY) -m tinytransformer grade "$(SUBMISSIONS)" --course "$(COURSE)" \
		$(foreach student,$(REGRADE),--regrade "$(student)") $(ARGS)

lint: .venv/.test
	$(PY) -m ruff check . && $(PY) -m ruff format --check .

format: .venv/.test
	$(PY) -m ruff check --fix . && $(PY) -m ruff format .

notebooks: .venv/.test
	$(RUN) OMP_NUM_THREADS=1 $(PY) tools/notebooks.py $(ARGS)

book: .venv/.book
	$(RUN) $(ONE_THREAD) $(PY) tools/book.py $(ARGS)

figures: .venv/.lab
	$(RUN) $(ONE_THREAD) $(PY) tools/figures.py $(ARGS)

thumbnails: .venv/.lab
	$(RUN) $(PY) tools/thumbnails.py

screenshot: .venv/.test
	$(RUN) $(ONE_THREAD) $(PY) tools/screenshot.py

benchmarks: .venv/.lab
	$(RUN) $(PY) benchmarks/import_time.py
	$(RUN) $(PY) benchmarks/microworld.py
	$(RUN) $(PY) benchmarks/attention.py
	$(RUN) $(PY) benchmarks/products.py

benchmarks-peers: .venv/.peers
	$(RUN) PYTHONPATH="$(CURDIR)/.venv/peers" $(PY) benchmarks/decoding.py $(ARGS)
	$(RUN) PYTHONPATH="$(CURDIR)/.venv/peers" $(PY) benchmarks/training.py $(ARGS)

benchmarks-exchange: .venv/.test
	$(RUN) OMP_NUM_THREADS=1 $(PY) benchmarks/exchange.py $(ARGS)

pins: .venv/.test
	$(RUN) $(PY) tools/pins.py

clean:
	rm -rf .venv dist build docs/_build .pytest_cache .ruff_cache .hypothesis

# Stamps: what is installed already is not installed again. They do not count in a folder that was moved or copied,
# since its .venv points elsewhere.
MOVED := $(shell test -e .venv/.lab && test "$$(cat .venv/.place 2>/dev/null)" != "$$(cd .venv && pwd -P)" && echo moved)
.PHONY: moved
moved:

.venv/.lab: requirements.txt constraints.txt pyproject.toml tools/install.py $(MOVED)
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here. Install Python 3.11 or newer," \
		"or name yours: make lab PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" tools/install.py $(if $(NEWEST),--newest lab,requirements.txt)
	@touch $@

.venv/.test: requirements-test.txt requirements-exchange.txt requirements-book.txt .venv/.lab
	@"$(PYTHON)" tools/install.py $(if $(NEWEST),--newest test,requirements-test.txt)
	@touch $@

.venv/.book: requirements-book.txt .venv/.lab
	@"$(PYTHON)" tools/install.py $(if $(NEWEST),--newest book,requirements-book.txt)
	@touch $@

.venv/.class: requirements-class.txt .venv/.lab
	@$(PY) -m pip install --quiet --no-deps --upgrade --target .venv/class -r requirements-class.txt
	@touch $@

# The peers stay apart from everything else, and bring nothing along that could replace ours.
.venv/.peers: benchmarks/requirements.txt .venv/.test
	@$(PY) -m pip install --quiet --no-deps --upgrade --target .venv/peers -r benchmarks/requirements.txt
	@touch $@
