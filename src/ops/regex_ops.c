/* regex_ops.c: RegexReplace, RegexFullMatch and their static forms. */
#include <stdlib.h>

#include "base/regex.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef regex_ops_ops[] = {
    {"RegexReplace", "input: string, pattern: string, rewrite: string -> output: string", "replace_global: bool = true",
     0},
    {"RegexFullMatch", "input: string, pattern: string -> output: bool", "", 0},
    {"StaticRegexReplace", "input: string -> output: string",
     "pattern: string; rewrite: string; replace_global: bool = true", 0},
    {"StaticRegexFullMatch", "input: string -> output: bool", "pattern: string", 0},
    {0},
};

typedef struct RegexState {
    Regex *regex; /* of the static forms */
    char *rewrite;
    size_t rewrite_len;
    bool all;
} RegexState;

static void clear_regex(void *state) {
    RegexState *s = state;
    regex_free(s->regex);
    free(s->rewrite);
}

static Error *init_pattern(const Node *node, void *state) {
    Str pattern;
    Error *err = node_attr_string(node, "pattern", &pattern);
    return err ? err : regex_compile(pattern, &((RegexState *)state)->regex);
}

static Error *init_all(const Node *node, void *state) {
    return node_attr_bool(node, "replace_global", &((RegexState *)state)->all);
}

static Error *init_rewrite(const Node *node, void *state) {
    RegexState *s = state;
    Str rewrite;
    Error *err = init_pattern(node, state);
    if (!err) err = init_all(node, state);
    if (!err) err = node_attr_string(node, "rewrite", &rewrite);
    if (err) return err;
    s->rewrite = str_dup(rewrite);
    s->rewrite_len = rewrite.len;
    return NULL;
}

typedef struct RegexJob {
    const Regex *regex;
    const TString *in;
    bool *matches;   /* of a match, */
    TString *out;    /* of a replacement: */
    Str rewrite;
    bool all;
} RegexJob;

static void match_range(void *arg, int64_t begin, int64_t end) {
    const RegexJob *job = arg;
    RegexMatcher *m = regex_matcher_new(job->regex);
    for (int64_t i = begin; i < end; i++) job->matches[i] = regex_full_match(m, tstring_str(&job->in[i]));
    regex_matcher_free(m);
}

static void replace_range(void *arg, int64_t begin, int64_t end) {
    const RegexJob *job = arg;
    RegexMatcher *m = regex_matcher_new(job->regex);
    for (int64_t i = begin; i < end; i++) {
        StrBuf b = {0};
        regex_replace(m, tstring_str(&job->in[i]), job->rewrite, job->all, &b);
        size_t len = b.len;
        tstring_take(&job->out[i], strbuf_detach(&b), len);
    }
    regex_matcher_free(m);
}

static Error *full_match(KernelContext *k, const Regex *r) {
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    if (!out) return NULL;
    RegexJob job = {.regex = r, .in = tensor_str(k->in[0]), .matches = tensor_bool(out)};
    threadpool_parallel_for(k->pool, out->count, 64, match_range, &job);
    return NULL;
}

static Error *replace(KernelContext *k, const Regex *r, Str rewrite, bool all) {
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    if (!out) return NULL;
    RegexJob job = {.regex = r, .in = tensor_str(k->in[0]), .out = tensor_str(out), .rewrite = rewrite, .all = all};
    threadpool_parallel_for(k->pool, out->count, 64, replace_range, &job);
    return NULL;
}

static Error *run_static_match(KernelContext *k) {
    return full_match(k, ((RegexState *)k->state)->regex);
}

static Error *run_static_replace(KernelContext *k) {
    const RegexState *s = k->state;
    return replace(k, s->regex, (Str){s->rewrite, s->rewrite_len}, s->all);
}

static Error *pattern_input(KernelContext *k, Regex **out) {
    if (k->in[1]->shape.rank != 0) 
        return error_invalid("Pattern must be scalar, but received %s", shape_text(&k->in[1]->shape).text);
    return regex_compile(tstring_str(tensor_str(k->in[1])), out);
}

static Error *run_match(KernelContext *k) {
    Regex *r;
    Error *err = pattern_input(k, &r);
    if (err) return err;
    err = full_match(k, r);
    regex_free(r);
    return err;
}

static Error *run_replace(KernelContext *k) {
    Regex *r;
    if (k->in[2]->shape.rank != 0) 
        return error_invalid("Rewrite must be scalar, but received %s", shape_text(&k->in[2]->shape).text);
    Error *err = pattern_input(k, &r);
    if (err) return err;
    Str rewrite = tstring_str(tensor_str(k->in[2]));
    err = replace(k, r, rewrite, ((RegexState *)k->state)->all);
    regex_free(r);
    return err;
}

const KernelDef regex_ops_cpu[] = {
    {"RegexReplace", .run = run_replace, .state_size = sizeof(RegexState), .init = init_all},
    {"RegexFullMatch", .run = run_match},
    {"StaticRegexReplace", .run = run_static_replace, .state_size = sizeof(RegexState), .init = init_rewrite,
     .clear = clear_regex},
    {"StaticRegexFullMatch", .run = run_static_match, .state_size = sizeof(RegexState), .init = init_pattern,
     .clear = clear_regex},
    {0},
};
