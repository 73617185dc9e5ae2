PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check

# Datasets that lie beside the checkout are used where no other place is named.
ifndef VEDUTE_DATA
ifneq ($(wildcard ../shared/data/.),)
export VEDUTE_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test test-slow test-all test-bench test-oldest golden omics engines lint docs smoke image clean

demo: .venv/.done
	$(BIN)/vedute demo -o demo-out --force

# Two processes with one thread each: threads of small models wait for each other more than they help.
# scikit-learn's checks run on five methods; with `make test-all` on every one.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
test: lint
	$(PYTEST)

# What takes seconds or starts processes (ranks, workers, other programs): a tenth of the tests, and as
# long as all others. Continuous integration runs both.
test-slow: .venv/.done
	$(PYTEST) -m "slow and not all"

test-all: lint
	$(PYTEST) -m "all or not all"

# The tests of bench/, the studies, which are installed into the same environment. Theirs are the
# targets of bench/Makefile: `make -C bench tables`.
test-bench: .venv/.done
	$(MAKE) -C bench test lint

# The oldest versions of the dependencies that pyproject.toml allows: constraints-oldest.txt.
OLDEST := tests/data tests/io tests/estimators tests/methods/test_contract.py
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
	OMP_NUM_THREADS=1 .venv-engines/bin/python -m pytest -q tests/scale/test_dask_frames.py
	OMP_NUM_THREADS=1 .venv-engines/bin/python -m pytest -q -m "all or not all" tests/test_docs.py -k engines

.venv-engines/.done: pyproject.toml constraints.txt
	@$(PYTHON) -m venv .venv-engines
	@.venv-engines/bin/pip install -q -c constraints.txt -e '.[dask]' pytest
	@touch $@

lint: .venv/.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

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
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("vedute needs Python 3.11 or newer: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv (a few minutes the first time)"
	@$(PYTHON) -m venv .venv
	@$(PIP) install -c constraints.txt -e '.[dev,plots]'
	@touch $@
