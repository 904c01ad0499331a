/* cmd_records.c: rill records: TFRecord files: what is in them, and whether they are whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/record.h"
#include "tools/command.h"
#include "tools/record_text.h"
#include "tools/report.h"

enum { MAX_FILES = 10000 };

typedef struct Options {
    const char *compression;
    int64_t skip, limit;
    bool as_json, help;
} Options;

/* Calls fn with every record of a file. */
typedef bool RecordFn(void *arg, int64_t index, uint64_t offset, Str record); /* false: enough */

typedef struct Scan {
    Compression compression;
    int64_t count;
    uint64_t bytes; /* of the records alone */
} Scan;

static Error *scan_file(const char *path, const Options *o, RecordFn *fn, void *arg, Scan *out) {
    RecordReader *r = NULL;
    *out = (Scan){0};
    Error *err = NULL;
    if (strcmp(o->compression, "auto") == 0) {
        err = compression_guess(&file_system_local, path, &out->compression);
    } else {
        char *name = xstrdup(o->compression);
        for (char *c = name; *c; c++) *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        err = compression_from_name(str_of(name), &out->compression);
        free(name);
    }
    if (!err) err = record_reader_open(&file_system_local, path, out->compression, &r);
    bool more = true, go_on = true;
    while (!err && more && go_on) {
        Str record;
        uint64_t offset = record_reader_position(r);
        err = record_reader_next(r, &record, &more);
        if (!err && record_reader_cut_short(r)) err = error_new(CODE_DATA_LOSS, "truncated record at %llu", (unsigned long long)offset);
        if (err) err = error_wrap(err, "%s", path);
        if (err || !more) break;
        if (fn) go_on = fn(arg, out->count, offset, record);
        out->count++;
        out->bytes += record.len;
    }
    record_reader_close(r);
    return err;
}

/* ---- ls ---- */

static bool add_to_schema(void *arg, int64_t index, uint64_t offset, Str record) {
    (void)index;
    (void)offset;
    record_schema_add(arg, record);
    return true;
}

static Error *list_file(const char *path, const Options *o, cJSON *list) {
    RecordSchema *schema = record_schema_new();
    Scan scan;
    Error *err = scan_file(path, o, add_to_schema, schema, &scan);
    if (!err && list) {
        cJSON *item = report_object(list, NULL);
        report_str(item, "file", str_of(path));
        report_str(item, "compression", str_of(compression_name(scan.compression)));
        report_int(item, "records", scan.count);
        report_int(item, "bytes", (int64_t)scan.bytes);
        record_schema_report(schema, item);
    } else if (!err) {
        char *size = report_size(scan.bytes);
        printf("%s: %lld records, %s, compression %s\n", path, (long long)scan.count, size,
               compression_name(scan.compression));
        free(size);
        record_schema_print(schema);
    }
    record_schema_free(schema);
    return err;
}

/* ---- cat ---- */

typedef struct Printing {
    const char *path;
    const Options *o;
    int64_t printed;
} Printing;

static bool print_record(void *arg, int64_t index, uint64_t offset, Str record) {
    Printing *p = arg;
    if (index < p->o->skip) return true;
    if (p->o->limit >= 0 && p->printed >= p->o->limit) return false;
    p->printed++;
    if (p->o->as_json) {
        cJSON *json = cJSON_CreateObject();
        report_str(json, "file", str_of(p->path));
        report_int(json, "index", index);
        report_int(json, "offset", (int64_t)offset);
        report_int(json, "bytes", (int64_t)record.len);
        record_report(json, record);
        char *text = cJSON_PrintUnformatted(json);
        puts(text);
        cJSON_free(text);
        cJSON_Delete(json);
    } else {
        printf("record %lld at %llu, %zu bytes\n", (long long)index, (unsigned long long)offset, record.len);
        record_print(record);
    }
    return p->o->limit < 0 || p->printed < p->o->limit;
}

static Error *cat_file(const char *path, const Options *o, cJSON *list) {
    (void)list;
    Printing p = {path, o, 0};
    Scan scan;
    return scan_file(path, o, print_record, &p, &scan);
}

/* ---- count, verify ---- */

static Error *count_file(const char *path, const Options *o, cJSON *list) {
    Scan scan;
    Error *err = scan_file(path, o, NULL, NULL, &scan);
    if (err) return err;
    if (list) {
        cJSON *item = report_object(list, NULL);
        report_str(item, "file", str_of(path));
        report_int(item, "records", scan.count);
    } else {
        printf("%lld %s\n", (long long)scan.count, path);
    }
    return NULL;
}

/* Damage is a result here, told with the others; a file that is not there is an error too. */
static Error *verify_file(const char *path, const Options *o, cJSON *list) {
    Scan scan;
    Error *err = scan_file(path, o, NULL, NULL, &scan);
    if (list) {
        cJSON *item = report_object(list, NULL);
        report_str(item, "file", str_of(path));
        cJSON_AddBoolToObject(item, "ok", !err);
        report_int(item, "records", scan.count);
        if (err) report_str(item, "problem", str_of(err->message));
    } else if (err) {
        printf("BROKEN %s: %s; %lld records before it are whole\n", path, err->message, (long long)scan.count);
    } else {
        printf("OK %s: %lld records\n", path, (long long)scan.count);
    }
    return err;
}

/* ---- The commands ---- */

typedef Error *FileFn(const char *path, const Options *o, cJSON *list);

/* Does it with every file; goes on after one that fails. errors_told: fn has told of them. */
static int run(int argc, char **argv, const char *usage, FileFn *fn, bool whole_json, bool errors_told) {
    Options o = {.compression = "auto", .limit = -1};
    const Flag flags[] = {
        {"compression", FLAG_STRING, &o.compression, "auto|none|gzip|zlib",
         "of the files (auto: by their first bytes)"},
        {"json", FLAG_BOOL, &o.as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &o.help, NULL, "print this"},
        {"skip", FLAG_INT, &o.skip, "N", "cat: leave out the first N records of a file"},
        {"limit", FLAG_INT, &o.limit, "N", "cat: at most N records of a file"},
        {0},
    };
    const char **paths = xcalloc(MAX_FILES, sizeof *paths);
    int count, code;
    if (command_parse(flags, usage, argc, argv, paths, 1, MAX_FILES, &count, &code)) {
        cJSON *json = o.as_json && whole_json ? cJSON_CreateObject() : NULL,
              *list = json ? report_array(json, "files") : NULL;
        code = 0;
        for (int i = 0; i < count; i++) {
            Error *err = fn(paths[i], &o, list);
            if (err) code = EXIT_FAILURE;
            if (err && !errors_told)
                command_failed(argv[0], err);
            else
                error_free(err);
        }
        if (json) report_print(json);
    }
    free(paths);
    return code;
}

static int records_ls(int argc, char **argv) {
    return run(argc, argv,
               "records ls FILE... [--json]\n\nSays of each file how many records it has, their bytes and compression; "
               "when they are tf.train.Example,\n"
               "the features with their types and how many values they have.\n",
               list_file, true, false);
}

static int records_cat(int argc, char **argv) {
    return run(argc, argv,
               "records cat FILE... [--skip N] [--limit N] [--json]\n\nPrints the records; those that are a "
               "tf.train.Example or SequenceExample, decoded.\n"
               "With --json one object a line.\n",
               cat_file, false, false);
}

static int records_count(int argc, char **argv) {
    return run(argc, argv,
               "records count FILE... [--json]\n\nCounts the records of each file; reads and checks them all.\n",
               count_file, true, false);
}

static int records_verify(int argc, char **argv) {
    return run(argc, argv,
               "records verify FILE... [--json]\n\nReads every record and checks its checksums. Exit code 1 when a "
               "file is damaged or missing.\n",
               verify_file, true, true);
}

const Subcommand records_rows[] = {
    {"ls", records_ls, "how many records, of what kind, with which features"},
    {"cat", records_cat, "prints records, decoded when they are examples"},
    {"count", records_count, "counts them"},
    {"verify", records_verify, "checks every checksum"},
    {0},
};

int cmd_records(int argc, char **argv) {
    return subcommand_run(records_rows, "records", "looks into TFRecord files, plain or compressed", argc, argv);
}
