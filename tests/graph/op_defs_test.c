/* op_defs_test.c: every op row says what TensorFlow's registry says (op_defs.txt, written by make_op_defs.py). Run from the root of the repository. */
#include <stdlib.h>

#include "graph/op_def.h"
#include "ops/op_list.h"
#include "unit_test.h"

static int differences;

static void differ(const OpInfo *op, const char *what, Str ours, Str theirs) {
    differences++;
    print_message("%.*s: %s is '%.*s', in TensorFlow '%.*s'\n", STR_ARG(op->name), what, STR_ARG(ours), STR_ARG(theirs));
}

static void add_args(StrBuf *b, const ArgInfo *args, int count) {
    for (int i = 0; i < count; i++) {
        const ArgInfo *a = &args[i];
        strbuf_addf(b, "%s%.*s: %s", i ? ", " : "", STR_ARG(a->name), a->is_ref ? "Ref(" : "");
        if (a->number_attr.len) strbuf_addf(b, "%.*s * ", STR_ARG(a->number_attr));
        Str type = a->type_list_attr.len ? a->type_list_attr : a->type_attr.len ? a->type_attr : str_of(dtype_name(a->type));
        strbuf_addf(b, "%.*s%s", STR_ARG(type), a->is_ref ? ")" : "");
    }
}

static void check_op(const OpInfo *op, Str flags, Str signature) {
    StrBuf b = {0};
    add_args(&b, op->inputs, op->input_count);
    strbuf_add(&b, STR(" -> "));
    add_args(&b, op->outputs, op->output_count);
    if (!str_eq(strbuf_str(&b), signature)) differ(op, "signature", strbuf_str(&b), signature);
    strbuf_clear(&b);
    bool stateful = flags.ptr[0] == 'S';
    if (stateful != ((op->flags & OP_STATEFUL) != 0)) differ(op, "statefulness", stateful ? STR("no") : STR("yes"), stateful ? STR("yes") : STR("no"));
    bool uninitialised = flags.ptr[1] == 'U';
    if (uninitialised != ((op->flags & OP_UNINITIALIZED_INPUT) != 0)) differ(op, "taking uninitialised input", STR("another"), flags);
}

static Str unhex(Arena *a, Str text) {
    char *bytes = arena_alloc(a, text.len / 2 + 1);
    for (size_t i = 0; i + 1 < text.len; i += 2) {
        char two[3] = {text.ptr[i], text.ptr[i + 1], 0};
        bytes[i / 2] = (char)strtol(two, NULL, 16);
    }
    return (Str){bytes, text.len / 2};
}

/* Numbers in lists may be packed or not. */
static bool same_value(Str type, Str a, Str b) {
    if (str_eq(a, b)) return true;
    int64_t x[64], y[64];
    float f[64], g[64];
    int n = attr_list_ints(a, x, 64);
    if (str_is(type, "list(int)")) return n == attr_list_ints(b, y, 64) && memcmp(x, y, sizeof *x * (size_t)n) == 0;
    n = attr_list_floats(a, f, 64);
    if (str_is(type, "list(float)")) return n == attr_list_floats(b, g, 64) && memcmp(f, g, sizeof *f * (size_t)n) == 0;
    DataType s[64], t[64];
    n = attr_list_types(a, s, 64);
    return str_is(type, "list(type)") && n == attr_list_types(b, t, 64) && memcmp(s, t, sizeof *s * (size_t)n) == 0;
}

static void check_attr(Arena *a, const OpInfo *op, Str name, Str type, Str value, Str minimum) {
    const AttrInfo *attr = op_attr(op, name);
    char what[100];
    snprintf(what, sizeof what, "attribute %.*s", STR_ARG(name));
    if (!attr) {
        differ(op, what, STR("missing"), type);
        return;
    }
    if (!str_eq(attr->type, type)) differ(op, what, attr->type, type);
    if (str_is(type, "tensor")) return; /* rows cannot say such a default: the kernel knows it */
    bool has_default = !str_is(value, "-");
    if (has_default != (attr->default_value.ptr != NULL))
        differ(op, what, has_default ? STR("without default") : STR("with default"), value);
    else if (has_default && !same_value(type, attr->default_value, unhex(a, value)))
        differ(op, what, STR("another default"), value);
    int64_t least;
    if (str_is(type, "int") && str_to_int64(minimum, &least) && !(attr->has_minimum && attr->minimum == least)) differ(op, what, STR("another minimum"), minimum);
}

static void rows_say_what_tensorflow_says(void **state) {
    (void)state;
    ops_register_all();
    FILE *file = fopen("tests/graph/op_defs.txt", "r");
    assert_non_null(file);
    Arena *a = arena_new();
    const OpInfo *op = NULL;
    int checked = 0;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t len; (len = getline(&line, &room, file)) > 0;) {
        Str rest = {line, (size_t)len - 1}, part[5];
        for (int i = 0; i < 5; i++) part[i] = str_next(&rest, '\t');
        if (str_is(part[0], "op")) {
            op = op_find(part[1]);
            checked += op != NULL;
            if (op) check_op(op, part[2], part[3]);
        } else if (op) {
            check_attr(a, op, part[1], part[2], part[3], part[4]);
        }
    }
    free(line);
    fclose(file);
    arena_free(a);
    assert_true(checked > 400);
    assert_int_equal(differences, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_say_what_tensorflow_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
