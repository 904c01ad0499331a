/* record_fuzz.c: TFRecord files, plain and compressed, and lines of text. */
#include "base/crc32c.h"
#include "fuzz_target.h"
#include "io/record.h"
#include "memory_files.h"

enum { MAX_RECORDS = 1000 };

static void read_records(Str file, Compression compression) {
    memory_files[0] = (struct MemoryFile){"x", file};
    RecordReader *r = NULL;
    Error *err = record_reader_open(&memory_file_system, "x", compression, &r);
    bool more = !err;
    Str record;
    for (int i = 0; !err && more && i < MAX_RECORDS; i++) err = record_reader_next(r, &record, &more);
    if (r) record_reader_close(r);
    error_free(err);
}

static void read_lines(Str file, Compression compression) {
    memory_files[0] = (struct MemoryFile){"x", file};
    InputStream *s = NULL;
    StrBuf line = {0};
    Error *err = input_stream_open(&memory_file_system, "x", compression, &s);
    bool more = !err;
    for (int i = 0; !err && more && i < MAX_RECORDS; i++) err = input_stream_line(s, &line, &more);
    if (s) input_stream_close(s);
    strbuf_clear(&line);
    error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Str input = input_str(data, size);
    unsigned choice = take_choice(&input);
    char *out = NULL;
    size_t len;
    Compression compression = (Compression)(choice % 3);
    switch (choice / 3 % 4) {
    case 0: read_lines(input, compression); break;
    case 1: {
        Error *err = decompress(input, compression, &out, &len);
        if (!err) free(out);
        error_free(err);
        break;
    }
    default: read_records(input, compression);
    }
    return 0;
}
