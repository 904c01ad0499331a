/* text_fuzz.c: texts people write: CSV, regular expressions, slices of checkpoints, devices, clusters, timeouts. */
#include "base/regex.h"
#include "cluster/spec.h"
#include "fuzz_target.h"
#include "io/csv.h"
#include "io/tensor_slice.h"
#include "net/address.h"
#include "net/grpc_frame.h"
#include "placement/device_name.h"

static void read_regex(Str input) {
    Str pattern = take_piece(&input), rewrite = take_piece(&input);
    Regex *r = NULL;
    Error *err = regex_compile(pattern, &r);
    if (err) {
        error_free(err);
        return;
    }
    Str groups[REGEX_MAX_GROUPS];
    RegexMatcher *m = regex_matcher_new(r);
    regex_search(m, input, 0, groups);
    regex_full_match(m, input);
    StrBuf out = {0};
    regex_replace(m, str_slice(input, 0, 200), rewrite, true, &out);
    strbuf_clear(&out);
    regex_matcher_free(m);
    regex_free(r);
}

static void read_cluster(Str input, bool is_json) {
    ClusterSpec spec = {0};
    char *job = NULL;
    int index = 0;
    if (is_json) {
        error_free(cluster_spec_from_json(input, &spec, &job, &index));
    } else {
        Pb__ClusterDef *def = pb__cluster_def__unpack(NULL, input.len, (const uint8_t *)input.ptr);
        if (def) error_free(cluster_spec_from_def(def, &spec));
        if (def) pb__cluster_def__free_unpacked(def, NULL);
    }
    Pb__ClusterDef *again = cluster_spec_to_def(&spec);
    pb__cluster_def__free_unpacked(again, NULL);
    cluster_spec_clear(&spec);
    free(job);
}

static void read_device(Str input) {
    DeviceName a, b;
    Error *err = device_name_parse(take_piece(&input), &a);
    if (!err) err = device_name_parse(input, &b);
    Arena *arena = arena_new();
    if (!err) {
        device_name_merge(&a, &b, true);
        device_name_text(arena, &a);
    }
    error_free(err);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Str input = input_str(data, size);
    unsigned choice = take_choice(&input) % 8;
    int64_t timeout_ns;
    if (choice == 0) {
        CsvFields fields = {0};
        error_free(csv_split(input, ',', size & 1, &fields));
        csv_fields_clear(&fields);
    } else if (choice == 1) {
        TensorSlice slice;
        Shape full;
        error_free(slice_parse_spec(input, &full, &slice));
        slice_decode(input, &slice);
    } else if (choice == 2) {
        read_cluster(input, true);
    } else if (choice == 3) {
        read_cluster(input, false);
    } else if (choice == 4) {
        read_device(input);
    } else if (choice == 5) {
        grpc_timeout_parse(input, &timeout_ns);
        char *host = NULL, *port = NULL;
        error_free(address_split(input, &host, &port));
        free(host);
        free(port);
    } else {
        read_regex(input);
    }
    return 0;
}
