# Rill: `make demo` shows it at work, `make test` runs all tests; both install what they need first.
MODE ?= release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
ifeq ($(MODE),fuzz)
CC := clang-14
B := build/fuzz
else
B := build/$(MODE)$(if $(filter cc gcc,$(CC)),,-$(CC))
endif

ifeq ($(filter $(MODE),release debug asan tsan fuzz),)
$(error MODE=$(MODE) is none of release, debug, asan, tsan, fuzz)
endif
# Sub-makes use every core unless the caller said -j.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

FLAGS_release := -O3 -g
FLAGS_debug := -O0 -g
FLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FLAGS_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
FLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror $(if $(filter fuzz,$(MODE)),-Wno-missing-field-initializers)
PKGS := libnghttp2 libuv libprotobuf-c zlib libcjson libpng libjpeg icu-uc sqlite3 libwebp libwebpdemux

CFLAGS_ALL = -std=gnu17 -D_GNU_SOURCE $(FLAGS_$(MODE)) -fno-math-errno -fno-trapping-math -ffp-contract=$(CONTRACT) $(PAIRING) -fvisibility=hidden -fPIC -pthread -Isrc -Iinclude -I$(B)/gen
LIBS = $(shell pkg-config --libs $(PKGS)) -ldnnl -lgomp -lsnappy -lgif -lm -pthread

# Nobody looks for the exceptions that numbers raise, which lets choices become vectors. Products and sums are rounded one by one, so that
# results do not depend on the processor; but not in functions that approximate and in matrix products, which have an order of their own for each.
CONTRACT := off
$(B)/kernels/gemm_wide.o $(B)/kernels/triangle.o $(B)/kernels/vector_math.o $(B)/kernels/special_vectors.o $(B)/kernels/gemm_small.o $(B)/kernels/gemm_thin.o: CONTRACT := fast
# No vectors of two numbers in a row: in a chain of turns the first would wait for the second, and of complex numbers' sums and differences in turns gcc fuses the
# products, whatever -ffp-contract says.
$(B)/kernels/diagonal.o $(B)/ops/binary.o $(B)/ops/unary_grad.o: PAIRING := -fno-tree-slp-vectorize
PROTOS := $(wildcard proto/*.proto)
GEN_C := $(PROTOS:proto/%.proto=$(B)/gen/proto/%.pb-c.c)
GEN_H := $(GEN_C:.c=.h)
LIB_SRC := $(filter-out src/tools/%,$(wildcard src/*/*.c src/*/*/*.c))
TOOL_SRC := $(wildcard src/tools/*.c)
LIB_OBJ := $(LIB_SRC:src/%.c=$(B)/%.o) $(GEN_C:.c=.o)
TOOL_OBJ := $(TOOL_SRC:src/%.c=$(B)/%.o)
TEST_SRC := $(wildcard tests/*/*_test.c)
TEST_BIN := $(TEST_SRC:tests/%.c=$(B)/tests/%)
HEADERS := $(patsubst include/%,%,$(wildcard include/*.h include/*/*.h include/*/*/*.h))
TF_NAMES := libtensorflow.so.2 libtensorflow_cc.so.2 libtensorflow_framework.so.2
VERSION := $(shell sed -n 's/.*"rill \([0-9.]*\).*/\1/p' src/tools/cmd_version.c)

BENCH_BIN := $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c)) $(if $(shell command -v mpicc),$(B)/bench/mpi)
EXAMPLES := $(patsubst examples/c/%.c,$(B)/examples/%,$(filter-out %_data.c,$(wildcard examples/c/*.c)))

.PHONY: all examples demo-python lib tests demo test unit fuzz check bench bench-programs install deps clean
.SECONDARY:
all: deps
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(B)/rill $(B)/librill.a $(B)/librill.so

deps:
	@scripts/install_deps.sh build

# A local cluster, one process for each task, trains on handwritten digits; the program is examples/c/digits.c.
demo: all
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(B)/examples/digits
	@B=$(B) scripts/demo.sh

# The same by a TensorFlow program in Python.
demo-python: all
	@scripts/install_deps.sh test
	@.venv/bin/python examples/demo.py --rill $(B)/rill

# Everything; M=graph: the tests of one module.
test: deps
	@scripts/install_deps.sh test
	@python3 scripts/run_tests.py $(M)

# The C tests alone, in the given MODE.
unit: deps
	@scripts/install_deps.sh test
	@python3 scripts/run_tests.py --unit-only --mode $(MODE) $(M)

# Random input for every parser, FUZZ_SECONDS for each; M=image: one of them.
FUZZ_SECONDS ?= 300
fuzz: deps
	@scripts/install_deps.sh test
	@python3 scripts/run_fuzz.py --seconds $(FUZZ_SECONDS) $(M)

check:
	@python3 scripts/check_layers.py
	@python3 scripts/check_sizes.py

# Beside TensorFlow, PyTorch, JAX, OpenMPI and Gloo, taking turns; writes docs/benchmarks.md. BENCH="steps transfer": only these groups.
bench: all
	@scripts/install_deps.sh bench
	@$(MAKE) -s --no-print-directory $(PARALLEL) bench-programs
	@MODE=$(MODE) .venv/bin/python bench/run.py $(BENCH)

# Program, libraries, headers, man page, completion, demo. PREFIX=/usr/local; DESTDIR for packagers.
install: DEST = $(DESTDIR)$(PREFIX)
install: all
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(B)/examples/digits
	@install -d $(DEST)/bin $(DEST)/lib/pkgconfig $(DEST)/include
	@install $(B)/rill $(DEST)/bin/rill
	@install -m 644 $(B)/librill.a $(DEST)/lib/librill.a
	@install $(B)/librill.so $(DEST)/lib/librill.so.0
	@ln -sf librill.so.0 $(DEST)/lib/librill.so
	@for n in $(TF_NAMES); do \
		if [ -e $(DEST)/lib/$$n ] && [ ! -L $(DEST)/lib/$$n ]; then echo "kept $(DEST)/lib/$$n, which is not Rill's"; \
		else ln -sf librill.so.0 $(DEST)/lib/$$n; fi; done
	@for h in $(HEADERS); do install -D -m 644 include/$$h $(DEST)/include/$$h; done
	@install -D $(B)/examples/digits $(DEST)/share/rill/demo/digits
	@install -m 644 data/digits.csv.gz data/README.md $(DEST)/share/rill/demo
	@install -D -m 644 man/rill.1 $(DEST)/share/man/man1/rill.1
	@install -d $(DEST)/share/bash-completion/completions $(DEST)/share/zsh/site-functions
	@$(B)/rill completion bash > $(DEST)/share/bash-completion/completions/rill
	@$(B)/rill completion zsh > $(DEST)/share/zsh/site-functions/_rill
	@install -d $(DEST)/share/rill/python/rill
	@install -m 644 python/rill/*.py $(DEST)/share/rill/python/rill
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' scripts/rill.pc.in > $(DEST)/lib/pkgconfig/rill.pc
	@echo "installed rill $(VERSION) in $(DEST)"

bench-programs: $(BENCH_BIN)
lib: $(B)/librill.a
examples: $(EXAMPLES)
tests: $(TEST_BIN)

$(B)/gen/proto/%.pb-c.c $(B)/gen/proto/%.pb-c.h: proto/%.proto
	@mkdir -p $(B)/gen
	@echo "PROTO $<"
	@protoc-c --proto_path=. --c_out=$(B)/gen $<

$(B)/gen/%.o: $(B)/gen/%.c
	@$(CC) $(CFLAGS_ALL) -w -c $< -o $@

$(B)/%.o: src/%.c $(GEN_H)
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(CFLAGS_ALL) $(WARN) -MMD -MP -c $< -o $@

$(B)/kernels/sobol.o: src/kernels/sobol_directions.bin

$(B)/librill.a: $(LIB_OBJ)
	@rm -f $@
	@echo "AR $@"
	@ar rcs $@ $^

# $(B)/lib has it under the names by which programs look for TensorFlow's C library.
$(B)/librill.so: $(LIB_OBJ) src/capi/librill.map
	@echo "LD $@"
	@$(CC) $(FLAGS_$(MODE)) -shared -Wl,-soname,librill.so.0 -Wl,-Bsymbolic -Wl,--version-script=src/capi/librill.map $(LIB_OBJ) -o $@ $(LIBS)
	@mkdir -p $(B)/lib
	@for n in librill.so.0 $(TF_NAMES); do ln -sf ../librill.so $(B)/lib/$$n; done

$(B)/rill: $(TOOL_OBJ) $(B)/librill.a
	@echo "LD $@"
	@$(CC) $(FLAGS_$(MODE)) $(TOOL_OBJ) $(B)/librill.a -o $@ $(LIBS)

$(B)/tests/%: tests/%.c $(B)/librill.a
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(CFLAGS_ALL) $(WARN) -Itests -MMD -MP $< $(B)/librill.a -o $@ $(LIBS) -lcmocka

$(B)/tests/fuzz/%_fuzz: tests/fuzz/%_fuzz.c $(B)/librill.a
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(CFLAGS_ALL) $(WARN) -Itests -MMD -MP $< $(B)/librill.a -o $@ -fsanitize=fuzzer $(LIBS) -lcmocka

$(B)/examples/%: examples/c/%.c examples/c/digits_data.c $(B)/librill.a
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) -std=gnu17 -D_GNU_SOURCE $(FLAGS_$(MODE)) $(WARN) -pthread -Iinclude -MMD -MP $< examples/c/digits_data.c $(B)/librill.a -o $@ $(LIBS)

$(B)/bench/%: bench/%.c
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) -std=gnu17 -D_GNU_SOURCE $(FLAGS_$(MODE)) $(WARN) $< -o $@ -ldnnl -lm -pthread

# A peer; Debian's mpicc brings its own flags.
$(B)/bench/mpi: bench/peers/mpi.c
	@mkdir -p $(@D)
	@echo "CC $<"
	@mpicc -std=gnu17 -D_GNU_SOURCE $(FLAGS_release) $(WARN) $< -o $@

-include $(EXAMPLES:=.d) $(LIB_OBJ:.o=.d) $(TOOL_OBJ:.o=.d) $(TEST_BIN:=.d)

clean:
	rm -rf build
