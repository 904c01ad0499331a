/* golden_test.c: replays the golden cases in one process and compares with the values TensorFlow gave.

   usage: golden_test [--dir DIR] [--passes on|off] [NAME-SUBSTRING...]. --passes off runs the graphs as they are. Cases that use an op Rill lacks are counted as "not supported"; all others must pass.

   Like the Python client it casts what is fed to the type of the fed tensor, and answers fetches of fed tensors itself. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "graph/function.h"
#include "golden/compare.h"
#include "graph/graph_def.h"
#include "ops/op_list.h"
#include "runtime/direct_session.h"

static char *read_file(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(2);
    }
    fseek(f, 0, SEEK_END);
    *len = (size_t)ftell(f);
    rewind(f);
    char *text = xcalloc(1, *len + 1);
    if (fread(text, 1, *len, f) != *len) exit(2);
    fclose(f);
    return text;
}

static char *decode64(const char *text, size_t *len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = xmalloc(strlen(text) + 4);
    unsigned bits = 0, count = 0;
    *len = 0;
    for (; *text && *text != '='; text++) {
        bits = bits << 6 | (unsigned)(strchr(digits, *text) - digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[(*len)++] = (char)(bits >> count);
        }
    }
    return out;
}

typedef struct Case {
    cJSON *json;
    char *tmp_dir, *data_dir;
    Graph *graph; /* for the types of its tensors */
} Case;

/* @TMP@ and @DATA@ stand for directories. */
static char *substitute(const Case *c, const char *text, size_t len, size_t *out_len) {
    StrBuf b = {0};
    for (size_t i = 0; i < len; i++) {
        if (len - i >= 5 && memcmp(text + i, "@TMP@", 5) == 0) {
            strbuf_add(&b, str_of(c->tmp_dir));
            i += 4;
        } else if (len - i >= 6 && memcmp(text + i, "@DATA@", 6) == 0) {
            strbuf_add(&b, str_of(c->data_dir));
            i += 5;
        } else {
            strbuf_addc(&b, text[i]);
        }
    }
    *out_len = b.len;
    return strbuf_detach(&b);
}

static Tensor *case_tensor(const Case *c, const char *id) {
    const cJSON *t = cJSON_GetObjectItem(cJSON_GetObjectItem(c->json, "tensors"), id);
    Shape shape = {0};
    const cJSON *dim;
    cJSON_ArrayForEach(dim, cJSON_GetObjectItem(t, "shape")) shape.dims[shape.rank++] = (int64_t)dim->valuedouble;
    DataType dtype = (DataType)cJSON_GetObjectItem(t, "enum")->valueint;
    Tensor *out = NULL;
    Error *err = tensor_new(dtype, &shape, &out);
    if (err) {
        fprintf(stderr, "%s\n", err->message);
        exit(2);
    }
    size_t len;
    if (dtype == DT_STRING) {
        const cJSON *s;
        int64_t i = 0;
        cJSON_ArrayForEach(s, cJSON_GetObjectItem(t, "strings")) {
            char *raw = decode64(s->valuestring, &len);
            size_t sub_len;
            char *text = substitute(c, raw, len, &sub_len);
            tstring_set(&tensor_str(out)[i++], (Str){text, sub_len});
            free(text);
            free(raw);
        }
    } else {
        char *raw = decode64(cJSON_GetObjectItem(t, "b64")->valuestring, &len);
        if (len != tensor_bytes(out)) {
            fprintf(stderr, "tensor %s: %zu bytes, want %zu\n", id, len, tensor_bytes(out));
            exit(2);
        }
        memcpy(out->data, raw, len);
        free(raw);
    }
    return out;
}

static void note(StrBuf *problems, int step, const char *what, const char *detail) {
    if (problems->len < 1500) strbuf_addf(problems, "%sstep %d: %s %.400s", problems->len ? "\n      " : "", step, what, detail);
}

static void check_fetch(const Case *c, int step, const char *name, Tensor *got, const char *id, StrBuf *problems) {
    Tensor *want = case_tensor(c, id);
    double rtol = cJSON_GetObjectItem(c->json, "rtol")->valuedouble, atol = cJSON_GetObjectItem(c->json, "atol")->valuedouble;
    if (cJSON_IsTrue(cJSON_GetObjectItem(c->json, "exact"))) {
        rtol = 1e-6;
        atol = 1e-7;
    }
    bool ok = got->dtype == want->dtype && shape_eq(&got->shape, &want->shape) && values_equal(got, want, rtol, atol);
    if (!ok) {
        char *g = describe_tensor(got, 5), *w = describe_tensor(want, 5);
        char *text = xasprintf("got %s want %s", g, w);
        note(problems, step, name, text);
        free(text);
        free(g);
        free(w);
    }
    tensor_unref(want);
}

/* ---- What the client does before and after a step ---- */

/* The type of tensor "node:index"; DT_INVALID when unknown. */
static DataType type_of(const Graph *g, const char *name) {
    const char *colon = strrchr(name, ':');
    const Node *n = colon ? graph_find(g, (Str){name, (size_t)(colon - name)}) : NULL;
    int index = colon ? atoi(colon + 1) : -1;
    return n && index >= 0 && index < n->output_count ? dtype_base(n->output_types[index]) : DT_INVALID;
}

/* The recorder fed Python integers, which come as int64. Takes t. */
static Tensor *cast_feed(Tensor *t, DataType want) {
    if (t->dtype != DT_INT64 || want != DT_INT32) return t;
    Tensor *out = NULL;
    Error *err = tensor_new(want, &t->shape, &out);
    if (err) {
        fprintf(stderr, "%s\n", err->message);
        exit(2);
    }
    for (int64_t i = 0; i < t->count; i++) tensor_i32(out)[i] = (int32_t)tensor_i64(t)[i];
    tensor_unref(t);
    return out;
}

static int find_name(const Str *names, int count, Str name) {
    int i = 0;
    while (i < count && !str_eq(names[i], name)) i++;
    return i < count ? i : -1;
}

/* Runs with the fetches that are not fed; the others are answered with the fed value. */
static Error *run_like_client(DirectSession *s, const RunSignature *sig, Tensor *const *feeds, Tensor **fetches) {
    Str *asked = xcalloc((size_t)sig->fetch_count, sizeof *asked);
    Tensor **answers = xcalloc((size_t)sig->fetch_count, sizeof *answers);
    RunSignature call = *sig;
    call.fetches = asked;
    call.fetch_count = 0;
    for (int i = 0; i < sig->fetch_count; i++)
        if (find_name(sig->feeds, sig->feed_count, sig->fetches[i]) < 0) asked[call.fetch_count++] = sig->fetches[i];
    Error *err = call.fetch_count || call.target_count ? direct_session_run(s, &call, feeds, answers, 60000) : NULL;
    for (int i = 0, next = 0; !err && i < sig->fetch_count; i++) {
        int fed = find_name(sig->feeds, sig->feed_count, sig->fetches[i]);
        fetches[i] = fed < 0 ? answers[next++] : tensor_ref(feeds[fed]);
    }
    free(asked);
    free(answers);
    return err;
}

static void run_step(const Case *c, DirectSession *s, int number, const cJSON *step, StrBuf *problems) {
    const cJSON *feeds = cJSON_GetObjectItem(step, "feeds"), *fetches = cJSON_GetObjectItem(step, "fetches");
    const cJSON *targets = cJSON_GetObjectItem(step, "targets"), *want_error = cJSON_GetObjectItem(step, "error");
    int feed_count = cJSON_GetArraySize(feeds), fetch_count = cJSON_GetArraySize(fetches), target_count = cJSON_GetArraySize(targets);
    Str *names = xcalloc((size_t)(feed_count + fetch_count + target_count), sizeof *names);
    Tensor **values = xcalloc((size_t)feed_count, sizeof *values), **results = xcalloc((size_t)fetch_count, sizeof *results);
    const cJSON *item;
    int i = 0;
    cJSON_ArrayForEach(item, feeds) {
        names[i] = str_of(item->string);
        values[i++] = cast_feed(case_tensor(c, item->valuestring), type_of(c->graph, item->string));
    }
    cJSON_ArrayForEach(item, fetches) names[i++] = str_of(item->valuestring);
    cJSON_ArrayForEach(item, targets) names[i++] = str_of(item->valuestring);
    RunSignature sig = {.feeds = names, .fetches = names + feed_count, .targets = names + feed_count + fetch_count, .feed_count = feed_count, .fetch_count = fetch_count, .target_count = target_count};
    Error *err = run_like_client(s, &sig, values, results);
    if (err && !want_error) {
        note(problems, number, error_code_name(err->code), err->message);
    } else if (err) {
        int code = cJSON_GetObjectItem(want_error, "local_code")->valueint;
        const char *text = cJSON_GetObjectItem(want_error, "contains")->valuestring;
        if ((int)err->code != code || !strstr(err->message, text)) {
            char *detail = xasprintf("%s, want code %d and '%s'", err->message, code, text);
            note(problems, number, error_code_name(err->code), detail);
            free(detail);
        }
    } else {
        if (want_error) note(problems, number, "no error, want", cJSON_GetObjectItem(want_error, "name")->valuestring);
        for (int j = 0; j < fetch_count; j++) {
            if (!want_error)
                check_fetch(c, number, names[feed_count + j].ptr, results[j], cJSON_GetArrayItem(cJSON_GetObjectItem(step, "expect"), j)->valuestring, problems);
            tensor_unref(results[j]);
        }
    }
    error_free(err);
    for (int j = 0; j < feed_count; j++) tensor_unref(values[j]);
    free(names);
    free(values);
    free(results);
}

/* Runs one case; the problems found, "" when there are none. */
static char *run_case(const char *dir, const char *name, const char *data_dir, const PassOptions *passes, bool *unsupported) {
    char *json_path = xasprintf("%s/%s.json", dir, name), *graph_path = xasprintf("%s/%s.pb", dir, name);
    size_t json_len, graph_len;
    char *json = read_file(json_path, &json_len), *graph = read_file(graph_path, &graph_len);
    char tmp[] = "/tmp/rill-golden-XXXXXX";
    Case c = {cJSON_Parse(json), mkdtemp(tmp), (char *)data_dir, graph_new()};
    c.graph->functions = function_library_new();
    StrBuf problems = {0};
    DirectSession *s = NULL;
    Error *err = graph_import(c.graph, (Str){graph, graph_len});
    if (!err) err = direct_session_new((Str){graph, graph_len}, 2, &s);
    if (!err) direct_session_set_passes(s, passes);
    if (err) {
        note(&problems, -1, error_code_name(err->code), err->message);
        error_free(err);
    } else {
        int number = 0;
        const cJSON *step;
        cJSON_ArrayForEach(step, cJSON_GetObjectItem(c.json, "steps")) run_step(&c, s, number++, step, &problems);
        direct_session_free(s);
    }
    *unsupported = problems.ptr && (strstr(problems.ptr, "Op type not registered") || strstr(problems.ptr, "No OpKernel"));
    char *clean = xasprintf("rm -rf %s", tmp);
    if (system(clean) != 0) fprintf(stderr, "could not remove %s\n", tmp);
    free(clean);
    cJSON_Delete(c.json);
    FunctionLibrary *functions = c.graph->functions;
    graph_free(c.graph);
    function_library_free(functions);
    free(json);
    free(graph);
    free(json_path);
    free(graph_path);
    return strbuf_detach(&problems);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv) {
    const char *dir = "tests/golden/cases";
    PassOptions passes = {0};
    int first = 1;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--dir") == 0) dir = argv[first + 1];
        if (strcmp(argv[first], "--passes") == 0 && strcmp(argv[first + 1], "off") == 0) passes.disabled = PASS_ALL;
    }
    ops_register_all();
    char *data_dir = realpath("tests/golden/data", NULL);
    char **names = NULL;
    size_t count = 0, capacity = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len < 4 || strcmp(e->d_name + len - 3, ".pb") != 0) continue;
        bool wanted = argc <= first;
        for (int i = first; i < argc; i++) wanted |= strstr(e->d_name, argv[i]) != NULL;
        if (!wanted) continue;
        names = vec_reserve(names, &capacity, count + 1, sizeof *names);
        names[count++] = xstrndup(e->d_name, len - 3);
    }
    if (d) closedir(d);
    if (count) qsort(names, count, sizeof *names, by_name);
    int passed = 0, failed = 0, skipped = 0;
    for (size_t i = 0; i < count; i++) {
        bool unsupported = false;
        char *problems = run_case(dir, names[i], data_dir, &passes, &unsupported);
        printf("%s %s\n", *problems ? unsupported ? "LACK" : "FAIL" : "PASS", names[i]);
        if (*problems) printf("      %s\n", problems);
        fflush(stdout);
        passed += !*problems;
        skipped += *problems && unsupported;
        failed += *problems && !unsupported;
        free(problems);
        free(names[i]);
    }
    free(names);
    free(data_dir);
    printf("golden cases: %d of %zu pass, %d need an op Rill lacks, %d fail\n", passed, count, skipped, failed);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed || !count;
}
