/* graph_shapes_test.c: the shapes of every node of the golden graphs, as TensorFlow inferred them; the format is told in README.md.

   graph_shapes_test FILE replays another recording and prints every difference. */
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "ops/op_list.h"
#include "shapes/shape_inference.h"
#include "unit_test.h"

#define CASES "tests/shapes/cases/graphs.txt"

typedef struct Counts {
    int graphs, nodes, wrong;
} Counts;

static char *shapes_text(const ShapeInfo *info, const Node *n) {
    StrBuf text = {0};
    for (int i = 0; i < n->output_count; i++) {
        PartialShape s;
        shapes_of(info, (Output){(Node *)n, i}, &s);
        char *shape = shape_str(&s);
        strbuf_addf(&text, "%s%s", i ? " " : "", s.rank < 0 ? "*" : shape);
        free(shape);
    }
    return strbuf_detach(&text);
}

/* Functions are looked into, which TensorFlow leaves to its Python: there, and after it, more may be known. */
static bool has_calls(const Graph *g) {
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        if (node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall") || (n->info && !op_find(n->op))) return true;
    }
    return false;
}

/* Whether one list of shapes says the same as another, and perhaps more. */
static bool says_as_much(Str more, Str less) {
    while (less.len) {
        Str a = str_next(&more, ' '), b = str_next(&less, ' ');
        if (str_is(b, "*")) continue;
        if (a.len < 2 || b.len < 2) return false;
        a = str_slice(a, 1, a.len - 1);
        b = str_slice(b, 1, b.len - 1);
        while (a.len || b.len) {
            Str x = str_next(&a, ','), y = str_next(&b, ',');
            if (!x.len || !y.len || (!str_is(y, "?") && !str_eq(x, y))) return false;
        }
    }
    return true;
}

/* Nodes behind an op that Rill does not have: of those less is known. */
static bool *find_unknown(const Graph *g) {
    bool *unknown = xcalloc((size_t)g->node_count + 1, sizeof *unknown), changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < g->node_count; i++) {
            bool is = !g->nodes[i]->info;
            for (int j = 0; j < g->nodes[i]->input_count; j++) is |= unknown[g->nodes[i]->inputs[j].node->id];
            changed |= is && !unknown[i];
            unknown[i] |= is;
        }
    }
    return unknown;
}

/* Where TensorFlow is wrong and we are not: it takes the dilations of rows and columns of a Conv3D for each other. */
static bool is_mistake(const Node *n) {
    int64_t *dilations = NULL;
    int count = 0;
    if (!node_is(n, "Conv3D")) return false;
    expect_ok(node_attr_ints(n, "dilations", &dilations, &count));
    bool differ = count == 5 && dilations[2] != dilations[3];
    free(dilations);
    return differ;
}

static void replay(Str line, Counts *counts) {
    Str path = str_next(&line, ';');
    char *name = str_dup(path), *bytes = NULL;
    size_t size = 0;
    expect_ok(file_read_all(&file_system_local, name, &bytes, &size));
    Graph *g = graph_new();
    g->functions = function_library_new();
    expect_ok(graph_import(g, (Str){bytes, size}));
    ShapeInfo *info = shape_info_new(g);
    Error *err = shapes_infer_graph(info);
    if (err) print_message("%s: %s\n", name, err->message);
    counts->wrong += err != NULL;
    bool calls = has_calls(g), *unknown = find_unknown(g);
    counts->graphs++;
    for (int i = 0; i < g->node_count && !err; i++) {
        const Node *n = g->nodes[i];
        Str wanted = str_next(&line, ';');
        if (unknown[i] || is_mistake(n)) continue;
        char *got = shapes_text(info, n);
        counts->nodes++;
        if (!str_is(wanted, got) && !(calls && says_as_much(str_of(got), wanted))) {
            counts->wrong++;
            print_message("%s: %.*s (%.*s): TensorFlow says %.*s, Rill %s\n", name, STR_ARG(n->name), STR_ARG(n->op), STR_ARG(wanted), got);
        }
        free(got);
    }
    free(unknown);
    error_free(err);
    shape_info_free(info);
    function_library_free(g->functions);
    graph_free(g);
    free(bytes);
    free(name);
}

static Counts replay_file(const char *path) {
    Counts counts = {0};
    char *bytes = NULL;
    size_t size = 0;
    expect_ok(file_read_all(&file_system_local, path, &bytes, &size));
    Str rest = {bytes, size};
    while (rest.len) {
        Str line = str_next(&rest, '\n');
        if (line.len) replay(line, &counts);
    }
    free(bytes);
    return counts;
}

static void every_node_of_the_graphs_has_the_shape_tensorflow_infers(void **state) {
    (void)state;
    Counts counts = replay_file(CASES);
    print_message("%d nodes of %d graphs\n", counts.nodes, counts.graphs);
    assert_true(counts.graphs > 150);
    assert_int_equal(counts.wrong, 0);
}

int main(int argc, char **argv) {
    ops_register_all();
    if (argc > 1) {
        Counts counts = replay_file(argv[1]);
        printf("%d nodes of %d graphs, %d wrong\n", counts.nodes, counts.graphs, counts.wrong);
        return counts.wrong != 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_of_the_graphs_has_the_shape_tensorflow_infers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
