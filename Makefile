# A thin layer over CMake presets; see CMakePresets.json and docs/building.md.

BUILD ?= build
JOBS ?= $(shell nproc)
# Tests at once: one more, since tests wait for servers, children and each other.
TESTS ?= $(shell expr $(JOBS) + 1)

.PHONY: all build build-cuda deps user-deps demo test test-deps test-build test-long mutants bench bench-kernels bench-sparse microbench-block-sparse bench-cuda bench-build bench-model bench-settings perf-receipts pages report receipt dist clean \
        debug clang asan ubsan tsan masks masks-all scalar-only aarch64 cuda test-clients test-grammar test-grammar-bench test-python wheels test-wheels sdist test-sdist deb test-deb test-adapters test-templates test-template-ids test-folders test-llama-cpp test-page test-slow-clients test-debian fuzz fuzz-run emulate

# What a user needs: the program, the libraries, their pages.
all:
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target tern_user

# The names that harnesses use (docs/names.md).
build: all

build-cuda: user-deps
	cmake --preset release -DTERN_CUDA=ON
	cmake --build --preset release -j $(JOBS) --target tern_user

# What tests need too is asked for by those who run them.
user-deps:
	scripts/install-deps --user

deps:
	scripts/install-deps

demo: user-deps
	@$(MAKE) --no-print-directory all
	@scripts/demo $(BUILD)/tern

test-deps: deps
	scripts/install-deps --python .venv || echo "make test: tests of the oracle will be skipped" >&2
	scripts/install-deps --aarch64 || echo "make test: the test on ARM will be skipped" >&2
	scripts/install-deps --fuzz || echo "make test: the fuzz targets will be skipped" >&2

test-build: test-deps
	cmake --preset release -DTERN_TEST_PYTHON="$$(scripts/install-deps --which-python .venv)"
	cmake --build --preset release -j $(JOBS)

# What tests print is kept, since tests/summary.py counts their functions by it.
COUNTED = --test-output-size-passed 4000000 --test-output-size-failed 4000000

# A few minutes: every kernel, every unit, the program end to end.
test: test-build
	ctest --preset release -j $(TESTS) -LE long $(COUNTED) --output-junit tests-short.xml

# The rest: fuzzing, each failure of each command, ARM, packages, the commands of all pages. The longest take turns, a
# third of them each day (tests/CMakeLists.txt); TURN=1 runs those of that turn, TURN=all every one.
TURN ?= $(shell expr $$(date +%s) / 86400 % 3)
OTHER_TURNS = $(if $(filter all,$(TURN)),none,turn[$(subst $(TURN),,012)])
test-long: test-build
	@case '$(TURN)' in [012]|all) ;; *) echo "make test-long: TURN: '$(TURN)' is not 0, 1, 2 or all" >&2; exit 2;; esac
	ctest --preset release -j $(JOBS) -L long -LE '$(OTHER_TURNS)' $(COUNTED) --output-junit tests-long.xml

# Breaks the source in small ways and says which test notices: `make mutants MUTANTS="--row M257"`
# (docs/building.md). An hour or more of two cores, less when its journal knows most of them.
MUTANTS ?=
mutants: deps
	scripts/install-deps --python .venv
	tests/mutants/mutants.py -j $(JOBS) --ninja 2 --cmake=-DTERN_CUDA=OFF \
	  --cmake=-DTERN_TEST_PYTHON="$$(scripts/install-deps --which-python .venv)" $(MUTANTS)

# Every processor that this one can pretend to be: a short list on each, a longer one on another each day
# (docs/building.md).
masks: test-build
	tests/machines/run.py --build $(BUILD) --short

# The whole suite on each of them: hours.
MASKS ?= --output-on-failure -j $(JOBS)
masks-all: test-build
	tests/machines/run.py --build $(BUILD) -- $(MASKS)

# Without its file, or with another number of rounds, a figure would be of something else than was asked for.
bench-settings:
	@test -z '$(PROMPTS)' || test -f '$(PROMPTS)' || { echo "make bench: PROMPTS: there is no file $(PROMPTS)" >&2; exit 2; }
	@case '$(RUNS)' in ''|0*|*[!0-9]*) echo "make bench: RUNS: '$(RUNS)' is not a number of rounds" >&2; exit 2;; esac

# Kernels; with PROMPTS or RUNS, which are a whole model's, what bench-model does.
bench: $(if $(PROMPTS)$(filter command environment,$(firstword $(origin RUNS))),bench-model,bench-kernels)

bench-kernels: bench-build
	$(BUILD)/bench/bench_kernels

# Sparse blocks beside dense products, at each share of stored blocks.
bench-sparse: all
	cmake --build --preset release -j $(JOBS) --target microbench_gemv_block_sparse
	$(BUILD)/bench/microbench_gemv_block_sparse

microbench-block-sparse: bench-sparse

# With nvcc and a GPU: the operations of the CUDA device, beside what it copies (docs/cuda.md).
bench-cuda: deps
	cmake --preset release -DTERN_CUDA=ON
	cmake --build --preset release -j $(JOBS) --target bench_device tern_cuda
	TERN_CUDA_MODULE=$(abspath $(BUILD)/libtern-cuda.so) $(BUILD)/bench/bench_device --json $(BUILD)/bench_device.json

bench-build: all
	cmake --build --preset release -j $(JOBS) --target bench_kernels

# A whole model, RUNS times, strictly: random tokens, then the prompts of a file, one a line
# (docs/performance.md).
MODEL ?= models/tern-small.gguf
RUNS ?= 3
PROMPTS ?=
bench-model: bench-settings all
	$(BUILD)/tern bench -m $(MODEL) --repeat $(RUNS) --strict
	$(if $(PROMPTS),$(BUILD)/tern run -m $(MODEL) --prompts-file '$(PROMPTS)' --rounds $(RUNS) --parallel 1 --strict --json)

# Everything that docs/performance.md shows, measured here into docs/receipts/MACHINE, and the page of it. SMOLLM2: a
# GGUF file of SmolLM2-135M-Instruct, for its receipts too.
perf-receipts: all
	lab/perf-receipts --tern $(BUILD)/tern $(if $(SMOLLM2),--smollm2 $(SMOLLM2)) $(if $(ONLY),--only '$(ONLY)')
	lab/pages

pages:
	lab/pages

# The receipt that the documents link: a run of the small model, tested, written, and run again.
receipt: all
	$(BUILD)/tern run -m models/tern-small.gguf -p 'Once upon a time' -n 64 --temp 0.7 --top-p 0.95 --seed 42 --deterministic --strict --ignore-eos --receipt ci/inference.json --force
	scripts/receipt-gate ci/inference.json $(BUILD)/tern

# build/tern-<version>.tar.gz, which builds without Python.
dist:
	cmake --preset release
	cmake --build --preset release --target dist

# Measures every kernel and writes $(REPORT)/report.html (docs/performance.md).
REPORT ?= out/report
report: bench-build
	scripts/install-deps --report .venv
	.venv/bin/python3 lab/report $(REPORT)

# Each preset: configure, build, run its tests.
debug clang asan ubsan tsan scalar-only:
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@

aarch64:
	scripts/install-deps --aarch64
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@

# With nvcc and a GPU: the CUDA module, and its tests on the device (docs/cuda.md).
cuda: deps
	cmake --preset release -DTERN_CUDA=ON
	cmake --build --preset release -j $(JOBS)
	TERN_TEST_DEVICE=required ctest --preset release -R '^device'

# Every kernel of the table on a processor that this machine need not be (docs/building.md).
emulate: bench-build
	tests/emulate/bochs-run -v -- $(BUILD)/bench/bench_kernels --check
	tests/emulate/receipt $(BUILD)/tern

# Every fuzz target for SECONDS, two at a time on two cores; the corpus stays in build-fuzz/corpus.
SECONDS ?= 1800
fuzz-run:
	scripts/install-deps --fuzz
	tests/fuzz/run.py --build build-fuzz --seconds $(SECONDS)

fuzz:
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)

# tern serve and clients that others wrote (tests/clients/README.md); CLIENTS="openai3 langchain" does these alone.
CLIENTS ?=
test-clients: all
	tests/clients/run.py --tern $(BUILD)/tern $(CLIENTS)

# llama.cpp's tests of its server, with tern serve (tests/llama_cpp/README.md), whose packages go into build/llama-venv:
# make test-llama-cpp FOLDER=/path/to/llama.cpp/tools/server/tests
test-llama-cpp: all
	python3 -m venv $(BUILD)/llama-venv
	$(BUILD)/llama-venv/bin/pip install -q -r tests/llama_cpp/requirements.txt
	$(BUILD)/llama-venv/bin/python tests/llama_cpp/run.py --tern $(BUILD)/tern --folder $(FOLDER)

# Chat templates of a folder against Jinja2: make test-templates FOLDER=/path/to/templates (docs/chat.md).
test-templates: all
	cmake --build --preset release -j $(JOBS) --target template_tool
	python3 tests/templates/run.py --tool $(BUILD)/tests/template_tool --folder $(FOLDER)

# Ids of conversations against transformers (tests/templates/check_ids.py), whose packages go into build/ids-venv:
# make test-template-ids MODEL=/path/to/SmolLM2.gguf FOLDER=/path/to/templates
test-template-ids: all
	python3 -m venv $(BUILD)/ids-venv
	$(BUILD)/ids-venv/bin/pip install -q -r tests/templates/requirements.txt
	$(BUILD)/ids-venv/bin/python tests/templates/check_ids.py --tern $(BUILD)/tern --model $(MODEL) \
	  $(if $(FOLDER),--folder $(FOLDER))

# Folders as transformers saves them, converted, beside transformers itself (tests/folders/check.py), whose packages go
# into a folder of build/ for each version: make test-folders TRANSFORMERS=4.49; FAMILIES="llama 'qwen3, yarn'" does these.
TRANSFORMERS ?= 5.24
FOLDERS_VENV = $(BUILD)/folders-venv-$(TRANSFORMERS)
test-folders: all
	cmake --build --preset release -j $(JOBS) --target tokenize_tool
	python3 -m venv $(FOLDERS_VENV)
	$(FOLDERS_VENV)/bin/pip install -q -r tests/folders/requirements-$(TRANSFORMERS).txt
	$(FOLDERS_VENV)/bin/python tests/folders/check.py --tern $(BUILD)/tern --tool $(BUILD)/tests/tokenize_tool $(FAMILIES)

# The Python package as pip installs it from the source tree, into an environment of its own: all its tests.
PYTHON ?= python3
test-python: user-deps
	$(PYTHON) -m venv $(BUILD)/python-venv
	$(BUILD)/python-venv/bin/pip install -q .
	for test in package hostile page memory; do \
	  tests/start $(BUILD)/python-venv/bin/python3 tests/python/test_$$test.py || exit 1; done

# build/wheels: the package for any Linux, one wheel for every Python from 3.10 on (docs/python.md#wheels). PLATFORMS
# names others than this machine's.
PLATFORMS ?=
wheels:
	scripts/make-wheels --jobs $(JOBS) $(addprefix --platform ,$(PLATFORMS))

# They are installed for each Python that is here, and answer as the program of this tree does.
test-wheels: all wheels
	tests/wheels/run.py --tern $(BUILD)/tern build/wheels/*.whl

# The source archive of the package, and pip that builds from it in an environment of its own.
sdist:
	scripts/make-wheels --source

test-sdist: all sdist
	tests/wheels/run.py --tern $(BUILD)/tern build/wheels/*.tar.gz

# build-deb/*.deb: the program, the libraries, what compiles with them (docs/install.md#debian-packages).
deb: user-deps
	scripts/make-deb build-deb $(JOBS)

# lintian, and dpkg over a copy of this system that is gone after the test.
test-deb: all deb
	tests/debs/run.py --tern $(BUILD)/tern build-deb/*.deb

# What it has for lm-eval, LangChain and transformers, with these in their pinned versions: gigabytes, for torch.
test-adapters: user-deps
	$(PYTHON) -m venv $(BUILD)/adapters-venv
	$(BUILD)/adapters-venv/bin/pip install -q . -r tests/python/requirements-adapters.txt
	for test in transformers langchain lm_eval; do \
	  tests/start $(BUILD)/adapters-venv/bin/python3 tests/python/test_$$test.py || exit 1; done

# The page of tern serve in a browser (tests/page/README.md); PAGE="test_chat Chat.test_stop" does this alone.
PAGE ?=
test-page: all
	scripts/install-deps --browser
	tests/page/run.py --tern $(BUILD)/tern $(PAGE)

# Masks of generated schemas against llguidance (tests/grammars), whose packages go into build/grammar-venv.
SCHEMAS ?= 2000
test-grammar: test-build
	python3 -m venv $(BUILD)/grammar-venv
	$(BUILD)/grammar-venv/bin/pip install -q -r tests/grammars/requirements.txt
	$(BUILD)/grammar-venv/bin/python tests/grammars/check_llguidance.py --tool $(BUILD)/tests/grammar_tool \
	  --schemas $(SCHEMAS)
	$(BUILD)/grammar-venv/bin/python tests/grammars/check_values.py --tool $(BUILD)/tests/grammar_tool \
	  --schemas $(SCHEMAS)
	$(BUILD)/grammar-venv/bin/python tests/grammars/check_formats.py --tool $(BUILD)/tests/grammar_tool

# Schemas and instances of JSONSchemaBench's maskbench/data: make test-grammar-bench FOLDER=... (docs/structured-output.md)
test-grammar-bench: test-build
	python3 -m venv $(BUILD)/grammar-venv
	$(BUILD)/grammar-venv/bin/pip install -q -r tests/grammars/requirements.txt
	$(BUILD)/grammar-venv/bin/python tests/grammars/check_bench.py --tool $(BUILD)/tests/grammar_tool --folder $(FOLDER)

# tern serve and slowhttptest (Debian has it): two minutes.
test-slow-clients: all
	tests/load/slow.py --tern $(BUILD)/tern

# /metrics of tern serve by Prometheus' own checker, which is not installed (tests/debian/README.md).
test-debian: test-build
	tests/debian/run.py --build $(BUILD)

clean:
	rm -rf build build-*
