/* iterator_path.c: the path of an iterator, as in Iterator::Root::Batch::Map, and the name of its dataset, as in
   MapDataset:1: the name the user gave it, or the op and how many datasets lie below it. */
#include "ops/dataset/iterator_path.h"

#include "base/str.h"
#include "ops/dataset/dataset_origin.h"

void iterator_step_name(const DatasetIterator *it, StrBuf *out) {
    Str op = dataset_origin_op(it->dataset);
    size_t at = 0;
    while (at < op.len && !str_starts((Str){op.ptr + at, op.len - at}, STR("Dataset"))) at++;
    if (at == op.len) {
        strbuf_addf(out, "%s", it->kind->name);
    } else {
        size_t after = at + strlen("Dataset");
        strbuf_addf(out, "%.*s%.*s", (int)at, op.ptr, (int)(op.len - after), op.ptr + after);
    }
}

static void add_path(const DatasetIterator *it, StrBuf *b) {
    if (it->parent)
        add_path(it->parent, b);
    else
        strbuf_addf(b, "%s", it->root ? it->root : "Iterator::Root");
    strbuf_add(b, STR("::"));
    iterator_step_name(it, b);
}

static int datasets_below(const Dataset *d) {
    int n = 0;
    for (int i = 0; i < d->input_count; i++) n += 1 + datasets_below(d->inputs[i]);
    return n;
}

Error *iterator_function_error(const DatasetIterator *it, Error *take) {
    bool joined = it->kind->is_map && it->parent && it->parent->kind->joins_map;
    if (!take || !it->dataset->origin || joined) return take;
    StrBuf name = {0}, path = {0};
    Str given = dataset_origin_name(it->dataset), op = dataset_origin_op(it->dataset);
    if (given.len)
        strbuf_add(&name, given);
    else
        strbuf_addf(&name, "%.*s:%d", STR_ARG(op), datasets_below(it->dataset));
    add_path(it, &path);
    take = error_wrap(take, "Error in user-defined function passed to %.*s transformation with iterator: %.*s",
                      STR_ARG(strbuf_str(&name)), STR_ARG(strbuf_str(&path)));
    strbuf_clear(&name);
    strbuf_clear(&path);
    return take;
}

Error *iterator_out_of_range(const DatasetIterator *it, Error *take) {
    StrBuf path = {0};
    add_path(it, &path);
    Error *err = error_internal(
        "Iterator \"%.*s\" returned `OutOfRange`. This indicates an implementation error as `OutOfRange` errors are "
        "not "
        "expected to be returned here. Original message: %s",
        STR_ARG(strbuf_str(&path)), take->message);
    strbuf_clear(&path);
    error_free(take);
    return err;
}
