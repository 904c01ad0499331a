# Rill: `make demo` shows it at work, `make test` runs all tests; both install what they need first.
MODE ?= release
PREFIX ?= /usr/local
CC ?= gcc
B := build/$(MODE)

FLAGS_release := -O3 -g
FLAGS_debug := -O0 -g
FLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FLAGS_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror
PKGS := libnghttp2 libuv openssl libprotobuf-c zlib libcjson

CFLAGS_ALL = -std=gnu17 -D_GNU_SOURCE $(FLAGS_$(MODE)) -fno-math-errno -fvisibility=hidden -fPIC -pthread -Isrc -Iinclude -I$(B)/gen
LIBS = $(shell pkg-config --libs $(PKGS)) -ldnnl -lgomp -lsnappy -lm -pthread

PROTOS := $(wildcard proto/*.proto)
GEN_C := $(PROTOS:proto/%.proto=$(B)/gen/proto/%.pb-c.c)
GEN_H := $(GEN_C:.c=.h)
LIB_SRC := $(filter-out src/tools/%,$(wildcard src/*/*.c src/*/*/*.c))
TOOL_SRC := $(wildcard src/tools/*.c)
LIB_OBJ := $(LIB_SRC:src/%.c=$(B)/%.o) $(GEN_C:.c=.o)
TOOL_OBJ := $(TOOL_SRC:src/%.c=$(B)/%.o)
TEST_SRC := $(wildcard tests/*/*_test.c)
TEST_BIN := $(TEST_SRC:tests/%.c=$(B)/tests/%)

.PHONY: all lib tests demo test bench install clean deps unit check
.SECONDARY:
all: deps
	$(MAKE) --no-print-directory $(B)/rill $(B)/librill.so

deps:
	@scripts/install_deps.sh build

lib: $(B)/librill.a
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

$(B)/librill.a: $(LIB_OBJ)
	@rm -f $@
	@echo "AR $@"
	@ar rcs $@ $^

$(B)/librill.so: $(LIB_OBJ)
	@echo "LD $@"
	@$(CC) $(FLAGS_$(MODE)) -shared -Wl,-soname,librill.so.0 $^ -o $@ $(LIBS)

$(B)/rill: $(TOOL_OBJ) $(B)/librill.a
	@echo "LD $@"
	@$(CC) $(FLAGS_$(MODE)) $(TOOL_OBJ) $(B)/librill.a -o $@ $(LIBS)

$(B)/tests/%: tests/%.c $(B)/librill.a
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(CFLAGS_ALL) $(WARN) -Itests -MMD -MP $< $(B)/librill.a -o $@ $(LIBS) -lcmocka

-include $(LIB_OBJ:.o=.d) $(TOOL_OBJ:.o=.d) $(TEST_BIN:=.d)

clean:
	rm -rf build
