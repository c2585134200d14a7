.PHONY: help install format lint types imports test slow quickstart results exports pages scorecard submissions readme docs site throughput gpu-speed gpu-queue report reliability mutation engine cluster oracle browser gpu check
SUITE ?= core
PUBLISHED = $(patsubst results/%/runs.jsonl,%,$(wildcard results/*/runs.jsonl))
DRAWN = add concat rope alibi

help:  ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install:  ## Install pebench, editable, with development tools
	python -m pip install -e '.[dev]'

format:  ## Format the code
	ruff format src tests benchmarks examples docs
	ruff check --fix src tests benchmarks examples docs

lint:  ## Check style
	ruff format --check src tests benchmarks examples docs
	ruff check src tests benchmarks examples docs

types:  ## Check types
	mypy

imports:  ## Check that imports point downwards
	lint-imports

test:  ## Run the tests of the default group: minutes
	python -m pytest -n auto --dist worksteal

slow:  ## Run the tests of the slow group, which the default run leaves out
	python -m pytest -n auto --dist worksteal -m 'slow and not cluster and not oracle and not browser and not gpu' tests

quickstart:  ## Run the embedded suite
	pebench run --suite quickstart

results:  ## Make results/$(SUITE) from runs/$(SUITE), or again from its own records
	pebench report $(or $(wildcard runs/$(SUITE)),results/$(SUITE)) --suite $(SUITE) --publish results/$(SUITE)

exports:  ## Make the page of results/$(SUITE) in every format, in exports/, which git ignores
	pebench report results/$(SUITE) --suite $(SUITE) --output exports/$(SUITE)

pages:  ## Make all that is made from published records again, without training: pages, pictures, overview
	for suite in $(PUBLISHED); do pebench report results/$$suite --suite $$suite --publish results/$$suite || exit 1; done
	for study in undeclared add_or_concat segments; do \
	python -m benchmarks.studies.$$study --output results/studies/$$study.md >/dev/null || exit 1; done
	$(MAKE) readme submissions scorecard

scorecard:  ## Make results/scorecard of all published records again
	pebench report --scorecard results --publish results/scorecard

submissions:  ## Check every submitted encoding, and make the leaderboard in results/submissions again
	mkdir -p results/submissions
	python -m benchmarks.submissions > submissions.tmp
	mv submissions.tmp results/submissions/README.md

readme:  ## Put overview and picture of the headline results into README.md, and the index of pages into results/README.md
	pebench report results/core --suite core --format overview > overview.tmp
	sed -i -e '/^<!-- overview/,/^<!-- \/overview/{//!d}' -e '/^<!-- overview/r overview.tmp' README.md results/README.md
	python -m benchmarks.index > pages.tmp
	sed -i -e '/^<!-- pages/,/^<!-- \/pages/{//!d}' -e '/^<!-- pages/r pages.tmp' results/README.md
	python -m benchmarks.picture > picture.tmp
	mv picture.tmp docs/assets/content-and-position.svg
	rm overview.tmp pages.tmp

docs:  ## Put the tables of encodings into docs/encodings.md, and draw those that are shown
	pebench list encodings --format overview > overview.tmp
	pebench list encodings --format markdown > markdown.tmp
	sed -i -e '/^<!-- groups/,/^<!-- \/groups/{//!d}' -e '/^<!-- groups/r overview.tmp' docs/encodings.md
	sed -i -e '/^<!-- encodings/,/^<!-- \/encodings/{//!d}' -e '/^<!-- encodings/r markdown.tmp' docs/encodings.md
	rm overview.tmp markdown.tmp
	for name in $(DRAWN); do pebench plot-encoding $$name --output docs/pictures/$$name.svg; done

site:  ## Build the site into site/, to be opened from there: its pages need no server and no network
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict

throughput:  ## Measure the training step against a hand-written loop and other libraries (extra oracle)
	python benchmarks/studies/throughput.py --threads 2 --tuned --peers --output results/studies/throughput.md

reliability:  ## Inject every failure that is to be survived, half an hour on two cores, and write results/reliability.md
	python -m benchmarks.reliability --output results/reliability.md

mutation:  ## Break the code in places drawn at random, an hour more each time, and write results/mutation.md
	test -e runs/mutation/coverage || python -m benchmarks.mutation --reach
	python -m benchmarks.mutation --minutes 60 --output results/mutation.md

gpu-speed:  ## Measure training on a GPU, in ten minutes at most: a step, fastest loops, other libraries, many runs at a time
	python -m benchmarks.studies.many_runs --device cuda --minutes 3.5 --output results/studies/many_runs.md $(if $(PEBENCH_DATA_DIR),--data-dir $(PEBENCH_DATA_DIR))
	python -m benchmarks.studies.throughput --device cuda --tuned --peers --minutes 5 --output results/studies/throughput-gpu.md

gpu-queue:  ## Go on with the large suites on a GPU for 9 minutes, where the last turn ended
	python -m benchmarks.gpu_queue $(if $(PEBENCH_DATA_DIR),--data-dir $(PEBENCH_DATA_DIR))

report:  ## Measure reports of very many runs
	python benchmarks/studies/report.py --output results/studies/report.md

engine:  ## Measure plans, start-up, overhead and packing, and preparing IMDB from PEBENCH_DATA_DIR
	python benchmarks/studies/engine.py $(if $(PEBENCH_DATA_DIR),--data-dir $(PEBENCH_DATA_DIR)) --output results/studies/engine.md

cluster:  ## Test Ray and SLURM (as root on Debian, installs and starts a SLURM of one node)
	python -m pip install -e '.[ray,slurm]'
	sh tests/engine/cluster/slurm.sh
	python -m pytest -m cluster tests/engine/cluster

gpu:  ## Test every encoding, and runs, on a GPU
	python -m pytest -m gpu tests

oracle:  ## Compare encodings with those of other packages
	python -m pip install -e '.[oracle]'
	python -m pytest -m oracle tests

browser:  ## Test the HTML page and the site in Chromium (Debian: chromium, chromium-driver)
	python -m pip install -e '.[browser,docs]'
	python -m pytest -m browser tests

check: lint types imports test  ## Lint, types, import rules and the default tests
