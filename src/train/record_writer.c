/* record_writer.c: TFRecord files written by a program.

   Example: features=1. Features: feature=1, a map: key=1 value=2. Feature: bytes_list=1. BytesList: value=1. */
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "io/record.h"
#include "proto/wire.h"
#include "rill/input.h"

struct RillRecordWriter {
    RecordWriter *file;
};

static TF_Code tell(TF_Status *status, Error *err) {
    TF_SetStatus(status, err ? (TF_Code)err->code : TF_OK, err ? err->message : "");
    error_free(err);
    return TF_GetCode(status);
}

RillRecordWriter *rill_record_writer_open(const char *path, const char *compression, TF_Status *status) {
    RecordWriter *file = NULL;
    Compression how = COMPRESSION_NONE;
    Error *err = compression_from_name(str_of(compression ? compression : ""), &how);
    if (!err) err = record_writer_open(&file_system_local, path, how, false, &file);
    if (tell(status, err) != TF_OK) return NULL;
    RillRecordWriter *w = xcalloc(1, sizeof *w);
    w->file = file;
    return w;
}

TF_Code rill_record_write(RillRecordWriter *w, const void *data, size_t size, TF_Status *status) {
    return tell(status, record_writer_add(w->file, (Str){data, size}));
}

TF_Code rill_record_write_example(RillRecordWriter *w, const RillExampleBytes *features, int count, TF_Status *status) {
    StrBuf all = {0}, entry = {0}, feature = {0}, list = {0}, example = {0};
    for (int i = 0; i < count; i++) {
        list.len = feature.len = entry.len = 0;
        wire_put_bytes(&list, 1, (Str){features[i].data, features[i].size});
        wire_put_bytes(&feature, 1, strbuf_str(&list));
        wire_put_bytes(&entry, 1, str_of(features[i].key));
        wire_put_bytes(&entry, 2, strbuf_str(&feature));
        wire_put_bytes(&all, 1, strbuf_str(&entry));
    }
    wire_put_bytes(&example, 1, strbuf_str(&all));
    TF_Code code = rill_record_write(w, example.ptr, example.len, status);
    StrBuf *used[] = {&all, &entry, &feature, &list, &example};
    for (size_t i = 0; i < 5; i++) strbuf_clear(used[i]);
    return code;
}

TF_Code rill_record_writer_close(RillRecordWriter *w, TF_Status *status) {
    if (!w) return tell(status, NULL);
    Error *err = record_writer_finish(w->file);
    record_writer_close(w->file);
    free(w);
    return tell(status, err);
}
