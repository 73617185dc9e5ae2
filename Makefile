PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check

# Datasets that lie beside the checkout are used where no other place is named.
ifndef VEDUTE_DATA
ifneq ($(wildcard ../shared/data/.),)
export VEDUTE_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test test-all test-oldest golden omics engines lint bench rivals soak tables paper leaderboard docs smoke image clean

demo: .venv/.done
	$(BIN)/vedute demo -o demo-out --force

# Two processes with one thread each: threads of small models wait for each other more than they help.
# scikit-learn's checks run on five methods; with `make test-all` on every one.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
test: lint
	$(PYTEST)

test-all: lint
	$(PYTEST) -m "all or not all"

# The oldest versions of the dependencies that pyproject.toml allows: constraints-oldest.txt.
OLDEST := tests/data tests/io tests/estimators tests/golden/test_old_formats.py tests/methods/test_contract.py
ONE_OF_A_KIND := not test_contract or mvp or mean_fill or mopoe or completer or dvimc
test-oldest: .venv-oldest/.done
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n 2 --dist worksteal $(OLDEST) -k "$(ONE_OF_A_KIND)"

.venv-oldest/.done: pyproject.toml constraints-oldest.txt
	@$(PYTHON) -m venv .venv-oldest
	@.venv-oldest/bin/pip install -q -c constraints-oldest.txt -e '.[plots,parquet,images]' pytest pytest-xdist
	@touch $@

# Whether results are byte for byte those of another commit, run beside this one: for changes of
# structure. `make golden AGAINST=HEAD~1`; WITHIN=1e-5 allows so many standard deviations.
AGAINST ?= HEAD
WITHIN ?= 0
golden: .venv/.done
	$(BIN)/python tests/golden/golden.py $(AGAINST) --within $(WITHIN)

# MuData and AnnData files: their packages want an older pandas, so they get a room of their own.
omics: .venv-omics/.done
	OMP_NUM_THREADS=1 .venv-omics/bin/python -m pytest -q tests/io/test_formats.py tests/io/test_scverse.py

.venv-omics/.done: pyproject.toml constraints.txt
	@$(PYTHON) -m venv .venv-omics
	@.venv-omics/bin/pip install -q -c constraints.txt -e '.[omics]' pytest pyarrow pillow
	@touch $@

# A Dask cluster of two worker processes, in an environment of its own.
engines: .venv-engines/.done
	OMP_NUM_THREADS=1 .venv-engines/bin/python -m pytest -q tests/benchmark/test_dask.py tests/estimators/test_dask_frames.py
	OMP_NUM_THREADS=1 .venv-engines/bin/python -m pytest -q -m "all or not all" tests/test_docs.py -k engines

.venv-engines/.done: pyproject.toml constraints.txt
	@$(PYTHON) -m venv .venv-engines
	@.venv-engines/bin/pip install -q -c constraints.txt -e '.[dask]' pytest
	@touch $@

lint: .venv/.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Kills, crashes, odd inputs and damaged files by the thousand, an hour or two; what is recorded is
# not done again. The table in docs/trust.md: `python -m vedute_bench.soak --table`.
soak: .venv/.done
	$(BIN)/python -m vedute_bench.soak

# The clustering table of the MVP paper: 15 minutes with a large GPU, many hours without one.
# Finished runs are kept: it may be stopped, and goes on.
RESULTS := bench/results/mvp-clustering
bench: .venv/.done
	$(BIN)/vedute bench mvp-clustering -o $(RESULTS)/records.jsonl
	$(MAKE) tables

# The tables and figures of all studies again, from the records that are here. The study `clustering`
# shares runs with mvp-clustering.
STUDIES := bench/results
tables: .venv/.done
	mkdir -p build
	cat $(STUDIES)/clustering/records.jsonl $(RESULTS)/records.jsonl > build/clustering.jsonl
	$(BIN)/vedute report build/clustering.jsonl -o $(STUDIES)/clustering --force
	grep -v '"dataset": "reuters1200"' build/clustering.jsonl > build/paper.jsonl  # the paper's datasets
	$(BIN)/vedute report build/paper.jsonl -o build/paper --force
	for s in mvp-clustering polymnist polymnist-complete shapes leaders-polymnist leaders-shapes; do \
	    $(BIN)/vedute report $(STUDIES)/$$s/records.jsonl -o $(STUDIES)/$$s --force || exit 1; done
	for f in acc error; do cp $(RESULTS)/$$f.png docs/images/mvp-clustering-$$f.png; done
	for f in acc error ranks; do cp $(STUDIES)/clustering/$$f.png docs/images/clustering-$$f.png; done
	for s in polymnist shapes; do cp $(STUDIES)/$$s/$$s-0.5.png docs/images/vaes-$$s.png; \
	    cp $(STUDIES)/$$s/side-by-side-$$s-0.5.png docs/images/inferred-$$s-by-all.png; \
	    cp $(STUDIES)/leaders-$$s/side-by-side-$$s-0.5.png docs/images/inferred-$$s-by-mvp.png; done
	cp $(STUDIES)/polymnist-complete/polymnist-0.png docs/images/vaes-polymnist-complete.png
	cp $(STUDIES)/shapes/shapes-0.1.png docs/images/vaes-shapes-tenth.png
	mkdir -p build/shapes && cp -r $(STUDIES)/shapes/pictures build/shapes  # of MVP alone
	grep '"label": "mvp (100 epochs)"' $(STUDIES)/shapes/records.jsonl > build/shapes/records.jsonl
	$(BIN)/vedute report build/shapes/records.jsonl -o build/shapes/report --force
	cp build/shapes/report/side-by-side-shapes-0.5.png docs/images/inferred-shapes-64.png
	$(BIN)/python -m vedute_bench.pages.what_works
	$(BIN)/python -m vedute_bench.experiments.defaults --tables
	$(BIN)/python -m vedute_bench.rivals.gaps --table
	$(BIN)/python -m vedute_bench.experiments.image_defaults --tables
	$(BIN)/python -m vedute_bench.pages.leaders
	$(BIN)/python -m vedute_bench.experiments.evenness --tables

# Every table and figure of the MVP paper beside ours: docs/paper, from the records that are here. A page
# says by which command a study gets its records.
paper: .venv/.done
	$(BIN)/python -m vedute_bench.paper.pages

# docs/leaderboard.md, from what papers report (bench/src/vedute_bench/pages/leaderboard.toml) and our records.
leaderboard: .venv/.done
	$(BIN)/python -m vedute_bench.pages.leaderboard

# Every method beside MOFA, scikit-learn's imputers, ridge and forests on the sets in VEDUTE_DATA, and
# docs/rivals.md. It goes on where it was: RIVALS='--minutes 30 --only methods=mvp,mofa' does a part.
rivals: .venv/.done
	@$(BIN)/python -c 'import mofapy2' 2>/dev/null || $(PIP) install -c constraints.txt -e '.[rivals]'
	$(BIN)/python -m vedute_bench.rivals.rivals $(RIVALS)
	$(BIN)/python -m vedute_bench.rivals.rivals --table

# The docs site, in build/site: build/site/index.html opens in a browser. The stories of the gallery run
# once, for some minutes; what they gave is kept in build/gallery until they or the package change.
docs: .venv/.done
	@$(BIN)/python -c 'import material, mkdocstrings_handlers.python' 2>/dev/null || \
	    $(PIP) install -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What must work wherever vedute was installed: `make smoke VEDUTE=vedute` after `pipx install`.
VEDUTE ?= $(BIN)/vedute
smoke:
	$(VEDUTE) --version
	$(VEDUTE) list
	$(VEDUTE) inspect handwritten
	$(VEDUTE) fit handwritten --method mean_fill -o build/smoke --force

# A Docker image for the CPU.
image:
	docker build -t vedute .
	$(MAKE) smoke VEDUTE="docker run --rm vedute"

clean:
	rm -rf demo-out dist build .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("vedute needs Python 3.11 or newer: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv (a few minutes the first time)"
	@$(PYTHON) -m venv .venv
	@$(PIP) install -c constraints.txt -e '.[dev,plots]'
	@touch $@
