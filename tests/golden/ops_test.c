/* ops_test.c: replays the recorded op cases in one process: values, error codes and gradients as TensorFlow gave them.

   usage: ops_test [--dir DIR] [NAME...]: files DIR/NAME.units, or ops; none: everything, and then every op of the registry must have a
   case or a line in elsewhere.txt. Error messages must begin as TensorFlow's, but for the units named in messages.txt. README.md beside it
   has the format and the tolerances. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "golden/compare.h"
#include "io/record.h"
#include "ops/op_list.h"
#include "runtime/direct_session.h"
#include "tensor/tensor_proto.h"

enum { TIMEOUT_MS = 60000, MOST_PROBLEMS = 3 };

/* What was found, over all files. */
typedef struct Totals {
    StrMap ops, types;         /* op, "op type": (void *)1, or 2 when a step failed */
    PathList names;            /* owns the keys */
    int units, steps, passed, failed_units;
    char *data_dir;
    StrMap other_words; /* units of messages.txt */
    int lacking; /* units of an op or a type that Rill lacks */
} Totals;

typedef struct Unit {
    const cJSON *json;
    Tensor **tensors;
    int tensor_count;
    const char *tmp_dir, *data_dir; /* what @TMP@ and @DATA@ stand for in strings */
    DirectSession *session;
    bool other_words; /* messages are not compared */
    StrBuf problems;
    int problem_count;
} Unit;

static void die(Error *err) {
    if (!err) return;
    fprintf(stderr, "%s\n", err->message);
    exit(2);
}

static bool replace_at(StrBuf *b, Str text, size_t *at, Str name, const char *by) {
    if (!str_starts(str_slice(text, *at, text.len), name)) return false;
    strbuf_add(b, str_of(by));
    *at += name.len;
    return true;
}

static void replace_paths(const Unit *u, Tensor *t) {
    for (int64_t i = 0; t->dtype == DT_STRING && i < t->count; i++) {
        Str text = tstring_str(&tensor_str(t)[i]);
        StrBuf b = {0};
        for (size_t at = 0; at < text.len;) {
            if (!replace_at(&b, text, &at, STR("@TMP@"), u->tmp_dir) && !replace_at(&b, text, &at, STR("@DATA@"), u->data_dir))
                strbuf_addc(&b, text.ptr[at++]);
        }
        tstring_set(&tensor_str(t)[i], strbuf_str(&b));
        strbuf_clear(&b);
    }
}

/* The tensors of a unit: each a TensorProto after its length. */
static void read_tensors(Unit *u, Str packed) {
    size_t capacity = 0;
    for (size_t at = 0; at + 4 <= packed.len;) {
        uint32_t size;
        memcpy(&size, packed.ptr + at, 4);
        u->tensors = vec_reserve(u->tensors, &capacity, (size_t)u->tensor_count + 1, sizeof *u->tensors);
        die(tensor_proto_decode((Str){packed.ptr + at + 4, size}, &u->tensors[u->tensor_count]));
        replace_paths(u, u->tensors[u->tensor_count++]);
        at += 4 + size;
    }
}

static void problem(Unit *u, int step, const char *what, const char *detail) {
    if (u->problem_count++ < MOST_PROBLEMS) strbuf_addf(&u->problems, "      step %d: %s %.600s\n", step, what, detail);
}

/* Default tolerances; a unit may have its own. */
static void tolerance(const Unit *u, DataType type, double *rtol, double *atol) {
    static const struct {
        DataType type;
        const char *name;
        double rtol, atol;
    } rows[] = {{DT_FLOAT, "float32", 2e-5, 2e-6},    {DT_DOUBLE, "float64", 1e-9, 1e-12},     {DT_HALF, "float16", 4e-3, 1e-3},
                {DT_BFLOAT16, "bfloat16", 3e-2, 1e-2}, {DT_COMPLEX64, "complex64", 2e-5, 2e-6}, {DT_COMPLEX128, "complex128", 1e-9, 1e-12}};
    *rtol = *atol = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].type != type) continue;
        const cJSON *own = cJSON_GetObjectItem(cJSON_GetObjectItem(u->json, "tolerance"), rows[i].name);
        *rtol = own ? cJSON_GetArrayItem(own, 0)->valuedouble : rows[i].rtol;
        *atol = own ? cJSON_GetArrayItem(own, 1)->valuedouble : rows[i].atol;
    }
}

static void check_value(Unit *u, int step, const char *name, const Tensor *got, const Tensor *want) {
    double rtol, atol;
    tolerance(u, want->dtype, &rtol, &atol);
    if (got->dtype == want->dtype && shape_eq(&got->shape, &want->shape) && values_equal(got, want, rtol, atol)) return;
    char *g = describe_tensor(got, 12), *w = describe_tensor(want, 12);
    char *text = xasprintf("\n        got  %.290s\n        want %.290s", g, w);
    problem(u, step, name, text);
    free(text);
    free(g);
    free(w);
}

static void describe_feeds(Unit *u, const cJSON *feeds) {
    const cJSON *item;
    cJSON_ArrayForEach(item, feeds) {
        char *text = describe_tensor(u->tensors[item->valueint], 8);
        strbuf_addf(&u->problems, "        with %s = %.200s\n", item->string, text);
        free(text);
    }
}

/* The message as scripts/op_cases/unit.py keeps it: without the node, the folder of the test, numbers that change from run to run. */
static char *message_kept(const Unit *u, const char *message) {
    StrBuf b = {0};
    size_t len = strlen(message), tmp_len = strlen(u->tmp_dir);
    for (size_t at = 0; at < len && strncmp(message + at, "\n\t [[", 5) != 0;) {
        size_t digits = message[at] == '_' ? strspn(message + at + 1, "0123456789") : 0;
        if (strncmp(message + at, u->tmp_dir, tmp_len) == 0) {
            strbuf_add(&b, STR("@TMP@"));
            at += tmp_len;
        } else if (digits > 0 && message[at + 1 + digits] == '_') {
            strbuf_addc(&b, '_');
            at += digits + 2;
        } else {
            strbuf_addc(&b, message[at++]);
        }
    }
    while (b.len > 0 && (b.ptr[b.len - 1] == ' ' || b.ptr[b.len - 1] == '\n')) b.len--;
    char *text = xstrndup(b.ptr ? b.ptr : "", b.len);
    strbuf_clear(&b);
    return text;
}

/* Recordings hold the first 120 characters. */
static bool says_the_same(const Unit *u, const char *message, const char *recorded) {
    enum { ALMOST_CUT = 116 };
    size_t len = strlen(recorded);
    char *kept = message_kept(u, message);
    bool same = len < ALMOST_CUT ? strcmp(kept, recorded) == 0 : strncmp(kept, recorded, ALMOST_CUT) == 0;
    free(kept);
    return same;
}

static void check_error(Unit *u, int number, const cJSON *step, const Error *err) {
    const cJSON *code = cJSON_GetObjectItem(step, "code");
    if (err && code && (int)err->code == code->valueint &&
        (u->other_words || says_the_same(u, err->message, cJSON_GetObjectItem(step, "message")->valuestring)))
        return;
    char *text = code ? xasprintf("%s %.300s; TensorFlow said %s: %s", err ? error_code_name(err->code) : "no error", err ? err->message : "",
                                  error_code_name((ErrorCode)code->valueint), cJSON_GetObjectItem(step, "message")->valuestring)
                      : xasprintf("%s %.300s", error_code_name(err->code), err->message);
    problem(u, number, "", text);
    free(text);
}

/* True when the step gave what TensorFlow gave. */
static bool run_step(Unit *u, int number, const cJSON *step) {
    const cJSON *feeds = cJSON_GetObjectItem(step, "feeds"), *fetches = cJSON_GetObjectItem(step, "fetches");
    const cJSON *targets = cJSON_GetObjectItem(step, "targets"), *expect = cJSON_GetObjectItem(step, "expect");
    int feed_count = cJSON_GetArraySize(feeds), fetch_count = cJSON_GetArraySize(fetches), target_count = cJSON_GetArraySize(targets);
    Str *names = xcalloc((size_t)(feed_count + fetch_count + target_count) + 1, sizeof *names);
    Tensor **values = xcalloc((size_t)feed_count + 1, sizeof *values), **results = xcalloc((size_t)fetch_count + 1, sizeof *results);
    int before = u->problem_count, i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, feeds) {
        names[i] = str_of(item->string);
        values[i++] = tensor_ref(u->tensors[item->valueint]);
    }
    cJSON_ArrayForEach(item, fetches) names[i++] = str_of(item->valuestring);
    cJSON_ArrayForEach(item, targets) names[i++] = str_of(item->valuestring);
    RunSignature sig = {.feeds = names, .fetches = names + feed_count, .targets = names + feed_count + fetch_count, .feed_count = feed_count, .fetch_count = fetch_count, .target_count = target_count};
    Error *err = direct_session_run(u->session, &sig, values, results, TIMEOUT_MS);
    if (err || !expect) check_error(u, number, step, err);
    for (int j = 0; !err && j < fetch_count; j++) {
        if (expect) check_value(u, number, names[feed_count + j].ptr, results[j], u->tensors[cJSON_GetArrayItem(expect, j)->valueint]);
        tensor_unref(results[j]);
    }
    if (u->problem_count > before && u->problem_count <= MOST_PROBLEMS) describe_feeds(u, feeds);
    error_free(err);
    for (int j = 0; j < feed_count; j++) tensor_unref(values[j]);
    free(names);
    free(values);
    free(results);
    return u->problem_count == before;
}

static void mark(Totals *t, StrMap *map, const char *key, bool ok) {
    if (!strmap_get(map, str_of(key))) {
        path_list_add(&t->names, key);
        strmap_put(map, str_of(t->names.items[t->names.count - 1]), (void *)1);
    }
    if (!ok) strmap_put(map, str_of(key), (void *)2);
}

static void mark_unit(Totals *t, const Unit *u, bool ok) {
    const cJSON *op;
    cJSON_ArrayForEach(op, cJSON_GetObjectItem(u->json, "ops")) {
        char *key = xasprintf("%s %s", op->valuestring, cJSON_GetObjectItem(u->json, "type")->valuestring);
        mark(t, &t->ops, op->valuestring, ok);
        mark(t, &t->types, key, ok);
        free(key);
    }
}

static void print_unit(const Unit *u, const char *word) {
    char *types = cJSON_PrintUnformatted(cJSON_GetObjectItem(u->json, "types"));
    printf("%s %s %s %s: %d problems\n%.*s", word, cJSON_GetObjectItem(u->json, "name")->valuestring, types,
           cJSON_GetObjectItem(u->json, "attrs")->valuestring, u->problem_count, (int)u->problems.len, u->problems.ptr);
    fflush(stdout);
    cJSON_free(types);
}

static void run_unit(Totals *t, Unit *u, Str graph) {
    const cJSON *steps = cJSON_GetObjectItem(u->json, "steps"), *step;
    Error *err = direct_session_new(graph, 2, &u->session);
    int number = 0, passed = 0;
    if (err) {
        problem(u, -1, error_code_name(err->code), err->message);
        error_free(err);
    } else {
        cJSON_ArrayForEach(step, steps) passed += run_step(u, number++, step);
        direct_session_free(u->session);
    }
    t->units++;
    t->steps += cJSON_GetArraySize(steps);
    t->passed += passed;
    bool ok = u->problem_count == 0;
    bool lacks = u->problems.ptr && (strstr(u->problems.ptr, "Op type not registered") || strstr(u->problems.ptr, "No OpKernel"));
    t->failed_units += !ok;
    t->lacking += lacks;
    if (!ok) print_unit(u, lacks ? "LACK" : "FAIL");
    mark_unit(t, u, ok);
}

static void run_with_files(Totals *t, Unit *u, Str graph, Str packed) {
    char tmp[] = "/tmp/rill-ops-XXXXXX";
    bool uses_files = memmem(packed.ptr, packed.len, "@TMP@", 5) != NULL;
    u->tmp_dir = uses_files ? mkdtemp(tmp) : tmp;
    read_tensors(u, packed);
    run_unit(t, u, graph);
    for (int i = 0; i < u->tensor_count; i++) tensor_unref(u->tensors[i]);
    free(u->tensors);
    strbuf_clear(&u->problems);
    char *clean = xasprintf("rm -rf %s", tmp);
    if (uses_files && system(clean) != 0) fprintf(stderr, "could not remove %s\n", tmp);
    free(clean);
}

static bool wanted(const cJSON *json, const char *family, char **names, int count) {
    bool yes = count == 0;
    for (int i = 0; i < count; i++) {
        const cJSON *op;
        yes |= strcmp(names[i], family) == 0 || strcmp(names[i], cJSON_GetObjectItem(json, "name")->valuestring) == 0;
        cJSON_ArrayForEach(op, cJSON_GetObjectItem(json, "ops")) yes |= strcmp(names[i], op->valuestring) == 0;
    }
    return yes;
}

static char *next_record(RecordReader *r, size_t *len) {
    Str record = {0};
    bool more = false;
    die(record_reader_next(r, &record, &more));
    if (!more) return NULL;
    *len = record.len;
    char *copy = xmalloc(record.len + 1);
    memcpy(copy, record.ptr, record.len);
    copy[record.len] = 0;
    return copy;
}

static void run_file(Totals *t, const char *path, char **names, int name_count) {
    RecordReader *r = NULL;
    die(record_reader_open(&file_system_local, path, COMPRESSION_ZLIB, &r));
    const char *base = strrchr(path, '/') + 1;
    char *family = xstrndup(base, strlen(base) - strlen(".units"));
    size_t len = 0, graph_len = 0, packed_len = 0;
    for (char *text; (text = next_record(r, &len));) {
        char *graph = next_record(r, &graph_len), *packed = next_record(r, &packed_len);
        cJSON *json = cJSON_Parse(text);
        if (!json || !graph || !packed) {
            fprintf(stderr, "%s is damaged\n", path);
            exit(2);
        }
        if (wanted(json, family, names, name_count)) {
            Unit u = {.json = json, .data_dir = t->data_dir};
            u.other_words = strmap_get(&t->other_words, str_of(cJSON_GetObjectItem(json, "name")->valuestring)) != NULL;
            run_with_files(t, &u, (Str){graph, graph_len}, (Str){packed, packed_len});
        }
        cJSON_Delete(json);
        free(text);
        free(graph);
        free(packed);
    }
    free(family);
    record_reader_close(r);
}

/* messages.txt: names of units, one a line. Keys point into the text. */
static char *read_names(const char *dir, StrMap *map) {
    char *path = xasprintf("%s/messages.txt", dir), *text = NULL;
    size_t len = 0;
    if (access(path, R_OK) == 0) die(file_read_all(&file_system_local, path, &text, &len));
    for (char *line = text, *rest = NULL; text && (line = strtok_r(line, "\n", &rest)); line = NULL) {
        if (*line != '#') strmap_put(map, str_of(line), (void *)1);
    }
    free(path);
    return text;
}

/* elsewhere.txt: "op file reason", one a line. Puts the ops into *map (keys point into *text); counts bad lines. */
static int read_elsewhere(const char *dir, StrMap *map, char **text) {
    char *path = xasprintf("%s/elsewhere.txt", dir);
    size_t len = 0;
    die(file_read_all(&file_system_local, path, text, &len));
    int bad = 0;
    for (char *line = *text, *rest = NULL; (line = strtok_r(line, "\n", &rest)); line = NULL) {
        if (*line == '#') continue;
        char *more = NULL, *op = strtok_r(line, " ", &more), *file = strtok_r(NULL, " ", &more);
        if (!op || !file || access(file, R_OK) != 0 || !more || !*more || !kernel_exists(str_of(op))) {
            printf("FAIL elsewhere.txt: %s %s: needs a known op, a file that is there and a reason\n", op ? op : "", file ? file : "");
            bad++;
            continue;
        }
        strmap_put(map, str_of(op), (void *)1);
    }
    free(path);
    return bad;
}

/* Every op of the registry has a case, or a line in elsewhere.txt, not both. Returns how many break this. */
static int check_registry(const Totals *t, const char *dir) {
    StrMap elsewhere = {0};
    char *text = NULL;
    int bad = read_elsewhere(dir, &elsewhere, &text), here = 0, there = 0;
    for (int i = 0; i < kernel_count(); i++) {
        Str op = str_of(kernel_at(i)->op);
        bool has_case = strmap_get(&t->ops, op) != NULL, has_line = strmap_get(&elsewhere, op) != NULL;
        here += has_case;
        there += has_line;
        if (has_case == has_line) {
            printf("FAIL %s: %s\n", op.ptr, has_case ? "has cases, and a line in elsewhere.txt" : "has neither a case nor a line in elsewhere.txt");
            bad++;
        }
    }
    printf("registry: %d ops, %d with cases, %d tested elsewhere (%s/elsewhere.txt)\n", kernel_count(), here, there, dir);
    strmap_clear(&elsewhere);
    free(text);
    return bad;
}

static int count_passing(const StrMap *m) {
    int n = 0;
    Str key;
    void *value;
    for (size_t at = 0; strmap_next(m, &at, &key, &value);) n += value == (void *)1;
    return n;
}

int main(int argc, char **argv) {
    const char *dir = "tests/golden/ops";
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--dir") == 0) {
        dir = argv[2];
        first = 3;
    }
    ops_register_all();
    Totals t = {.data_dir = realpath("tests/golden/data", NULL)};
    PathList files = {0};
    char *pattern = xasprintf("%s/*.units", dir), *other_words = read_names(dir, &t.other_words);
    die(file_glob(&file_system_local, pattern, &files));
    for (size_t i = 0; i < files.count; i++) run_file(&t, files.items[i], argv + first, argc - first);
    int bad = argc > first ? 0 : check_registry(&t, dir);
    printf("op cases: %zu ops (%d pass), %zu op x type (%d pass), %d units (%d fail, %d of them lack an op or type), %d cases, %d pass\n",
           t.ops.count, count_passing(&t.ops), t.types.count, count_passing(&t.types), t.units, t.failed_units, t.lacking, t.steps, t.passed);
    int failed = t.steps - t.passed + bad;
    printf("%d passed, %d failed\n", t.passed, failed);
    strmap_clear(&t.ops);
    strmap_clear(&t.types);
    strmap_clear(&t.other_words);
    path_list_clear(&t.names);
    path_list_clear(&files);
    free(pattern);
    free(other_words);
    free(t.data_dir);
    return failed || !t.steps;
}
