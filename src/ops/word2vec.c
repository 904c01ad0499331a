/* word2vec.c: Skipgram, NegTrain: pairs of words that stand near each other, and their vectors trained with words drawn at random. */
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "base/rng.h"
#include "ops/alias_table.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef word2vec_ops[] = {
    {"Skipgram",
     "-> vocab_word: string, vocab_freq: int32, words_per_epoch: int64, current_epoch: int32, total_words_processed: int64, examples: int32, labels: int32",
     "filename: string; batch_size: int; window_size: int = 5; min_count: int = 5; subsample: float = 0.001000000047", OP_STATEFUL},
    {"NegTrain", "w_in: Ref(float), w_out: Ref(float), examples: int32, labels: int32, lr: float ->", "vocab_count: list(int); num_negative_samples: int", OP_STATEFUL},
    {0},
};

/* ---- Skipgram ---- */

enum { AHEAD = 3000, SENTENCE = 1000, MOST_SAMPLES = 1 << 16 }; /* pairs made at a time, words of the text taken at a time, words set against a pair */

typedef struct SkipgramState {
    int64_t batch_size, window, min_count;
    float subsample;
    Tensor *words, *frequencies; /* the most frequent first, after "UNK" */
    int32_t *corpus;
    int64_t corpus_size;
    pthread_mutex_t mutex; /* guards what follows */
    PhiloxStream random;
    int32_t pairs[AHEAD][2], sentence[SENTENCE];
    int64_t next_pair, word, label, label_end; /* of the sentence */
    int64_t position, processed;               /* of the corpus */
    int32_t epoch;
} SkipgramState;

typedef struct Word {
    Str text;
    int64_t count, first; /* where it first stands in the text */
    int32_t id;
} Word;

static bool next_word(Str *rest, Str *word) {
    size_t from = 0;
    while (from < rest->len && isspace((unsigned char)rest->ptr[from])) from++;
    size_t to = from;
    while (to < rest->len && !isspace((unsigned char)rest->ptr[to])) to++;
    *word = str_slice(*rest, from, to);
    *rest = str_slice(*rest, to, rest->len);
    return word->len > 0;
}

static int by_count(const void *a, const void *b) {
    const Word *x = *(Word *const *)a, *y = *(Word *const *)b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

/* Every word that occurs; malloced, its members too. */
static Word **count_words(Str text, StrMap *map, int64_t *total) {
    Str word;
    while (next_word(&text, &word)) {
        Word *w = strmap_get(map, word);
        if (!w) {
            w = xcalloc(1, sizeof *w);
            *w = (Word){.text = word, .first = *total};
            strmap_put(map, word, w);
        }
        w->count++;
        ++*total;
    }
    Word **all = xmalloc((map->count + 1) * sizeof *all);
    size_t at = 0, n = 0;
    void *value;
    while (strmap_next(map, &at, &word, &value)) all[n++] = value;
    qsort(all, n, sizeof *all, by_count);
    return all;
}

static Error *keep_vocabulary(SkipgramState *s, Word *const *all, size_t count) {
    int64_t kept = 0, counted = 0;
    while ((size_t)kept < count && all[kept]->count >= s->min_count) kept++;
    Shape shape = {.rank = 1, .dims = {kept + 1}};
    Error *err = tensor_new(DT_STRING, &shape, &s->words);
    if (!err) err = tensor_new(DT_INT32, &shape, &s->frequencies);
    if (err) return err;
    tstring_set(&tensor_str(s->words)[0], STR("UNK"));
    for (int64_t i = 0; i < kept; i++) {
        all[i]->id = (int32_t)(i + 1);
        tstring_set(&tensor_str(s->words)[i + 1], all[i]->text);
        tensor_i32(s->frequencies)[i + 1] = (int32_t)all[i]->count;
        counted += all[i]->count;
    }
    tensor_i32(s->frequencies)[0] = (int32_t)(s->corpus_size - counted);
    return NULL;
}

static Error *read_text(SkipgramState *s, Str text, const char *path) {
    StrMap map = {0};
    Word **all = count_words(text, &map, &s->corpus_size);
    Error *err = NULL;
    if (s->corpus_size < s->window * 10)
        err = error_invalid("The text file %s contains too little data: %lld words", path, (long long)s->corpus_size);
    if (!err) err = keep_vocabulary(s, all, map.count);
    s->corpus = xmalloc((size_t)(s->corpus_size + 1) * sizeof *s->corpus);
    Str word;
    for (int64_t i = 0; !err && next_word(&text, &word); i++) s->corpus[i] = ((Word *)strmap_get(&map, word))->id;
    for (size_t i = 0; i < map.count; i++) free(all[i]);
    free(all);
    strmap_clear(&map);
    return err;
}

/* Frequent words are left out, the more the more frequent they are (Mikolov et al., 2013, equation 5). */
static bool keeps(SkipgramState *s, int32_t word) {
    if (!(s->subsample > 0)) return true;
    float frequency = (float)tensor_i32(s->frequencies)[word], scale = s->subsample * (float)s->corpus_size;
    float chance = (sqrtf(frequency / scale) + 1) * scale / frequency;
    return !(uniform_float(philox_stream_next(&s->random)) > chance);
}

static void next_sentence(SkipgramState *s) {
    for (int i = 0; i < SENTENCE; s->position++) {
        if (s->position >= s->corpus_size) {
            s->epoch++;
            s->position = 0;
        }
        if (keeps(s, s->corpus[s->position])) s->sentence[i++] = s->corpus[s->position];
    }
}

static void next_pair(SkipgramState *s, int32_t pair[2]) {
    for (;; s->label++) {
        if (s->label >= s->label_end) {
            s->processed++;
            if (++s->word >= SENTENCE) {
                s->word = 0;
                next_sentence(s);
            }
            int64_t skip = 1 + philox_stream_below(&s->random, (uint32_t)s->window);
            s->label = s->word > skip ? s->word - skip : 0;
            s->label_end = s->word + skip + 1 < SENTENCE ? s->word + skip + 1 : SENTENCE;
        }
        if (s->word != s->label) break;
    }
    pair[0] = s->sentence[s->word];
    pair[1] = s->sentence[s->label++];
}

static void fill_pairs(SkipgramState *s) {
    for (int i = 0; i < AHEAD; i++) next_pair(s, s->pairs[i]);
    s->next_pair = 0;
}

static Error *init_skipgram(const Node *node, void *state) {
    SkipgramState *s = state;
    pthread_mutex_init(&s->mutex, NULL);
    Str name = STR("");
    Error *err = node_attr_string(node, "filename", &name);
    if (!err) err = node_attr_int(node, "batch_size", &s->batch_size);
    if (!err) err = node_attr_int(node, "window_size", &s->window);
    if (!err) err = node_attr_int(node, "min_count", &s->min_count);
    if (!err) err = node_attr_float(node, "subsample", &s->subsample);
    if (err) return err;
    if (s->window < 1 || s->window > INT32_MAX) return error_invalid("window_size must be positive");
    if (s->batch_size < 0 || s->batch_size > INT32_MAX) return error_invalid("batch_size must not be negative");
    char *path = str_dup(name), *text = NULL;
    size_t len = 0;
    err = file_read_all(&file_system_local, path, &text, &len);
    if (!err) err = read_text(s, (Str){text, len}, path);
    free(text);
    free(path);
    if (err) return err;
    s->random = philox_stream(philox_from_seeds(0, 0));
    s->epoch = -1;
    s->position = s->corpus_size;
    s->word = SENTENCE;
    fill_pairs(s);
    return NULL;
}

static void clear_skipgram(void *state) {
    SkipgramState *s = state;
    tensor_unref(s->words);
    tensor_unref(s->frequencies);
    free(s->corpus);
    pthread_mutex_destroy(&s->mutex);
}

static Error *run_skipgram(KernelContext *k) {
    SkipgramState *s = k->state;
    Shape batch = {.rank = 1, .dims = {s->batch_size}};
    Tensor *words = kernel_output(k, 5, &batch), *labels = kernel_output(k, 6, &batch);
    if (!words || !labels) return NULL;
    kernel_set_output(k, 0, tensor_ref(s->words));
    kernel_set_output(k, 1, tensor_ref(s->frequencies));
    pthread_mutex_lock(&s->mutex);
    for (int64_t i = 0; i < s->batch_size; i++) {
        tensor_i32(words)[i] = s->pairs[s->next_pair][0];
        tensor_i32(labels)[i] = s->pairs[s->next_pair][1];
        if (++s->next_pair >= AHEAD) fill_pairs(s);
    }
    kernel_set_output(k, 2, tensor_scalar_i64(s->corpus_size));
    kernel_set_output(k, 3, tensor_scalar_i32(s->epoch));
    kernel_set_output(k, 4, tensor_scalar_i64(s->processed));
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---- NegTrain ---- */

typedef struct NegTrainState {
    int64_t samples;
    AliasTable words; /* by how often they occur, to the power of 3/4 */
    pthread_mutex_t mutex; /* guards random */
    PhiloxStream random;
} NegTrainState;

static Error *init_neg_train(const Node *node, void *state) {
    NegTrainState *s = state;
    int64_t *counts = NULL;
    int n = 0;
    pthread_mutex_init(&s->mutex, NULL);
    s->random = philox_stream(philox_from_seeds(rng_entropy(), rng_entropy()));
    Error *err = node_attr_int(node, "num_negative_samples", &s->samples);
    if (!err && s->samples > MOST_SAMPLES) err = error_invalid("num_negative_samples must be at most %d, got %lld", MOST_SAMPLES, (long long)s->samples);
    if (!err) err = node_attr_ints(node, "vocab_count", &counts, &n);
    float *weights = xmalloc((size_t)(n + 1) * sizeof *weights);
    double sum = 0;
    for (int i = 0; !err && i < n; i++) {
        weights[i] = powf((float)counts[i], 0.75f);
        if (!(weights[i] >= 0)) err = error_invalid("vocab_count must not be negative");
        sum += weights[i];
    }
    if (!err && n > 0 && !(sum > 0)) err = error_invalid("vocab_count has no word that occurs");
    if (!err && n > 0) alias_table_init(&s->words, weights, n);
    free(weights);
    free(counts);
    return err;
}

static void clear_neg_train(void *state) {
    NegTrainState *s = state;
    alias_table_clear(&s->words);
    pthread_mutex_destroy(&s->mutex);
}

static float dot(const float *a, const float *b, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Moves `out` along `in` by g, and says in `step` what `in` is to move by. */
static void pull(float *step, const float *in, float *out, float g, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        step[i] += out[i] * g;
        out[i] += in[i] * g;
    }
}

static void train_pair(NegTrainState *s, float *in, float *out, int32_t label, float rate, float *step, int64_t n) {
    memset(step, 0, (size_t)n * sizeof *step);
    pull(step, in, out + label * n, rate / (expf(dot(in, out + label * n, n)) + 1), n);
    for (int64_t j = 0; j < s->samples; j++) {
        int64_t sample = alias_table_draw(&s->words, &s->random);
        if (sample == label) continue;
        pull(step, in, out + sample * n, -rate / (expf(-dot(in, out + sample * n, n)) + 1), n);
    }
    for (int64_t i = 0; i < n; i++) in[i] += step[i];
}

static Error *check_words(const Tensor *words, const char *what, int64_t vocabulary) {
    for (int64_t i = 0; i < words->count; i++)
        if (tensor_i32(words)[i] < 0 || tensor_i32(words)[i] >= vocabulary) return bad_index(what, words, i, tensor_i32(words)[i], vocabulary);
    return NULL;
}

static Error *check_shapes(const KernelContext *k, const Tensor *in, const Tensor *out) {
    const NegTrainState *s = k->state;
    const Tensor *examples = k->in[2], *labels = k->in[3];
    if (in->shape.rank != 2) return error_invalid("Must be a matrix");
    if (!shape_eq(&in->shape, &out->shape)) return error_invalid("w_in.shape == w_out.shape");
    if (examples->shape.rank != 1) return error_invalid("Must be a vector");
    if (!shape_eq(&examples->shape, &labels->shape)) return error_invalid("examples.shape == labels.shape");
    if (k->in[4]->shape.rank != 0) return error_invalid("Must be a scalar");
    int64_t vocabulary = in->shape.dims[0];
    if (vocabulary != s->words.count) return error_invalid("vocab_size mismatches: %lld vs. %lld", (long long)vocabulary, (long long)s->words.count);
    Error *err = check_words(examples, "examples", vocabulary);
    return err ? err : check_words(labels, "labels", vocabulary);
}

/* The locks of the two are never held together: what is trained is a pair of copies, of which the last to be written stays. */
static Error *take_copy(KernelContext *k, int i, Tensor **out) {
    Variable *v = NULL;
    Error *err = kernel_variable(k, i, &v);
    if (err) return err;
    pthread_mutex_lock(&v->mutex);
    if (!v->value)
        err = error_new(CODE_FAILED_PRECONDITION, "Attempting to use uninitialized value %s", v->name);
    else
        err = tensor_copy(v->value, out);
    pthread_mutex_unlock(&v->mutex);
    resource_unref(&v->base);
    return err;
}

static Error *put_back(KernelContext *k, int i, const Tensor *value) {
    Variable *v = NULL;
    Error *err = kernel_variable(k, i, &v);
    if (err) return err;
    pthread_mutex_lock(&v->mutex);
    err = variable_write_locked(k, i, v, DT_FLOAT);
    if (!err && shape_eq(&v->value->shape, &value->shape)) memcpy(v->value->data, value->data, tensor_bytes(value));
    pthread_mutex_unlock(&v->mutex);
    resource_unref(&v->base);
    return err;
}

static Error *run_neg_train(KernelContext *k) {
    NegTrainState *s = k->state;
    Tensor *in = NULL, *out = NULL;
    Error *err = take_copy(k, 0, &in);
    if (!err) err = take_copy(k, 1, &out);
    if (!err) err = check_shapes(k, in, out);
    if (!err) {
        int64_t n = in->shape.dims[1];
        float rate = tensor_f32(k->in[4])[0], *step = xmalloc((size_t)(n + 1) * sizeof *step);
        pthread_mutex_lock(&s->mutex);
        for (int64_t i = 0; i < k->in[2]->count; i++)
            train_pair(s, tensor_f32(in) + tensor_i32(k->in[2])[i] * n, tensor_f32(out), tensor_i32(k->in[3])[i], rate, step, n);
        pthread_mutex_unlock(&s->mutex);
        free(step);
        err = put_back(k, 0, in);
    }
    if (!err) err = put_back(k, 1, out);
    tensor_unref(in);
    tensor_unref(out);
    return err;
}

const KernelDef word2vec_cpu[] = {
    {"Skipgram", .run = run_skipgram, .state_size = sizeof(SkipgramState), .init = init_skipgram, .clear = clear_skipgram, .flags = KERNEL_PER_SESSION},
    {"NegTrain", .run = run_neg_train, .state_size = sizeof(NegTrainState), .init = init_neg_train, .clear = clear_neg_train,
     .flags = KERNEL_PER_SESSION | KERNEL_REFS | KERNEL_EXPENSIVE},
    {0},
};
