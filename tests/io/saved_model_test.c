/* saved_model_test.c: MetaGraphs and SavedModels: read, chosen by tags, cut short and damaged. */
#include "io/saved_model.h"

#include <stdlib.h>

#include "base/memory.h"
#include "proto/wire.h"
#include "unit_test.h"

static void put_entry(StrBuf *to, uint32_t field, const char *key, StrBuf *value) {
    StrBuf entry = {0};
    wire_put_bytes(&entry, 1, str_of(key));
    wire_put_bytes(&entry, 2, strbuf_str(value));
    wire_put_bytes(to, field, strbuf_str(&entry));
    strbuf_clear(&entry);
    strbuf_clear(value);
}

static void put_message(StrBuf *to, uint32_t field, StrBuf *value) {
    wire_put_bytes(to, field, strbuf_str(value));
    strbuf_clear(value);
}

static StrBuf tensor_info(const char *name, DataType dtype) {
    StrBuf info = {0};
    wire_put_bytes(&info, 1, str_of(name));
    wire_put_uint(&info, 2, dtype);
    wire_put_bytes(&info, 3, STR("\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x02\x08\x03")); /* [-1, 3] */
    return info;
}

static StrBuf signature(void) {
    StrBuf s = {0}, info = tensor_info("x:0", DT_FLOAT), sparse = {0}, parts = {0};
    put_entry(&s, 1, "x", &info);
    wire_put_bytes(&parts, 1, STR("v:0"));
    wire_put_bytes(&parts, 2, STR("i:0"));
    wire_put_bytes(&parts, 3, STR("d:0"));
    put_message(&sparse, 4, &parts);
    wire_put_uint(&sparse, 2, DT_INT32);
    put_entry(&s, 1, "a_sparse", &sparse);
    info = tensor_info("y:1", DT_STRING);
    put_entry(&s, 2, "y", &info);
    wire_put_bytes(&s, 3, STR("predict"));
    wire_put_bytes(&s, 4, STR("\n\1x\x12\4\x08\x01\x12\x00")); /* defaults: x */
    return s;
}

/* A MetaGraph with a bit of everything. */
static StrBuf meta_graph(const char *tag) {
    StrBuf m = {0}, part = {0}, list = {0};
    wire_put_bytes(&part, 4, STR("serve"));
    if (*tag) wire_put_bytes(&part, 4, str_of(tag));
    wire_put_bytes(&part, 5, STR("2.21.0"));
    put_message(&m, 1, &part);
    wire_put_bytes(&m, 2, STR("graph"));
    wire_put_bytes(&part, 1, STR("save/Const:0"));
    wire_put_bytes(&part, 3, STR("save/restore_all"));
    wire_put_uint(&part, 7, 2);
    put_message(&m, 3, &part);
    wire_put_bytes(&list, 1, STR("init:0"));
    put_message(&part, 1, &list);
    put_entry(&m, 4, "saved_model_main_op", &part);
    wire_put_bytes(&list, 1, STR("\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    put_message(&part, 3, &list);
    put_entry(&m, 4, "numbers", &part);
    wire_put_float(&list, 1, 1.5f);
    put_message(&part, 4, &list);
    put_entry(&m, 4, "floats", &part);
    part = signature();
    put_entry(&m, 5, "serving_default", &part);
    list = tensor_info("asset:0", DT_STRING);
    put_message(&part, 1, &list);
    wire_put_bytes(&part, 2, STR("words.txt"));
    put_message(&m, 6, &part);
    return m;
}

static void everything_in_a_meta_graph_is_found(void **state) {
    (void)state;
    StrBuf bytes = meta_graph("");
    Arena *arena = arena_new();
    MetaGraph *m = NULL;
    expect_ok(meta_graph_parse(arena, strbuf_str(&bytes), &m));
    expect_str(m->graph_def, "graph");
    expect_str(m->producer, "2.21.0");
    expect_str(m->init_op, "init");
    assert_true(m->saver.present);
    expect_str(m->saver.filename_tensor, "save/Const:0");
    expect_str(m->saver.restore_op, "save/restore_all");
    assert_int_equal(m->asset_count, 1);
    expect_str(m->assets[0].tensor, "asset:0");
    expect_str(m->assets[0].filename, "words.txt");
    const Collection *c = meta_graph_collection(m, STR("numbers"));
    assert_true(c && c->kind == COLLECTION_INTS && c->count == 2 && c->ints[0] == 5 && c->ints[1] == -1);
    c = meta_graph_collection(m, STR("floats"));
    assert_true(c && c->kind == COLLECTION_FLOATS && c->count == 1 && c->floats[0] == 1.5f);
    const Signature *s = meta_graph_signature(m, STR("serving_default"));
    assert_non_null(s);
    assert_null(meta_graph_signature(m, STR("other")));
    assert_int_equal(s->input_count, 2);
    const TensorInfo *sparse = &s->inputs[0], *x = &s->inputs[1];
    expect_str(x->name, "x:0");
    assert_true(x->dtype == DT_FLOAT && x->shape.rank == 2 && x->shape.dims[0] == -1 && x->shape.dims[1] == 3);
    assert_int_equal(x->default_value.len, 4);
    assert_true(sparse->kind == TENSOR_SPARSE && sparse->part_count == 3);
    assert_true(sparse->parts[0].dtype == DT_INT32 && sparse->parts[1].dtype == DT_INT64);
    expect_str(sparse->parts[2].name, "d:0");
    expect_str(s->outputs[0].name, "y:1");
    arena_free(arena);
    strbuf_clear(&bytes);
}

/* Every prefix of the bytes, and every single damaged byte: a model or an error, never more. */
static void nothing_in_the_file_is_trusted(void **state) {
    (void)state;
    StrBuf bytes = meta_graph("gpu");
    for (size_t len = 0; len < bytes.len; len++) {
        char *copy = xmalloc(len + 1); /* its own memory, so that reading past the end is seen */
        memcpy(copy, bytes.ptr, len);
        Arena *arena = arena_new();
        MetaGraph *m = NULL;
        error_free(meta_graph_parse(arena, (Str){copy, len}, &m));
        arena_free(arena);
        free(copy);
    }
    for (size_t i = 0; i < bytes.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            char *copy = xmalloc(bytes.len);
            memcpy(copy, bytes.ptr, bytes.len);
            copy[i] = (char)(copy[i] ^ (1 << bit));
            Arena *arena = arena_new();
            MetaGraph *m = NULL;
            error_free(meta_graph_parse(arena, (Str){copy, bytes.len}, &m));
            arena_free(arena);
            free(copy);
        }
    }
    strbuf_clear(&bytes);
}

static void meta_graphs_are_chosen_by_all_their_tags(void **state) {
    (void)state;
    StrBuf file = {0}, a = meta_graph(""), b = meta_graph("gpu");
    wire_put_uint(&file, 1, 1);
    put_message(&file, 2, &a);
    put_message(&file, 2, &b);
    char dir[] = "/tmp/rill_saved_model_test.XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *path = xasprintf("%s/saved_model.pb", dir);
    expect_ok(file_write_all(&file_system_local, path, strbuf_str(&file)));
    assert_true(saved_model_exists(&file_system_local, dir));
    SavedModel *m = NULL;
    expect_ok(saved_model_open(&file_system_local, dir, &m));
    assert_true(m->format == MODEL_SAVED && m->count == 2 && m->schema_version == 1);
    assert_null(m->variables);
    const MetaGraph *g = NULL;
    Str tags[] = {STR("gpu"), STR("serve")};
    expect_ok(saved_model_find(m, tags, 2, &g));
    assert_ptr_equal(g, m->meta_graphs[1]);
    expect_ok(saved_model_find(m, tags + 1, 1, &g));
    assert_ptr_equal(g, m->meta_graphs[0]);
    expect_error(saved_model_find(m, tags, 1, &g), CODE_NOT_FOUND, "{ serve }, { serve,gpu }");
    saved_model_close(m);
    expect_ok(file_write_all(&file_system_local, path, str_slice(strbuf_str(&file), 0, file.len - 3)));
    expect_error(saved_model_open(&file_system_local, dir, &m), CODE_DATA_LOSS, "saved_model.pb");
    expect_ok(file_system_local.remove(path));
    expect_error(saved_model_open(&file_system_local, dir, &m), CODE_NOT_FOUND, dir);
    expect_ok(file_system_local.remove_dir(dir));
    expect_error(saved_model_open(&file_system_local, dir, &m), CODE_NOT_FOUND, dir);
    free(path);
    strbuf_clear(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_in_a_meta_graph_is_found),
        cmocka_unit_test(nothing_in_the_file_is_trusted),
        cmocka_unit_test(meta_graphs_are_chosen_by_all_their_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
