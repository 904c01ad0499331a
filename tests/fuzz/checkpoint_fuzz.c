/* checkpoint_fuzz.c: the index of a checkpoint (a LevelDB table) and what its entries say of the data; the file `checkpoint`. */
#include "fuzz_target.h"
#include "io/bundle.h"
#include "io/checkpoint_state.h"
#include "io/table.h"
#include "memory_files.h"

/* The table is the index of a V2 checkpoint, or a V1 checkpoint. */
static void read_bundle(Str index, Str values, bool old) {
    memory_files[0] = (struct MemoryFile){old ? "x" : "x.index", index};
    memory_files[1] = (struct MemoryFile){"x.data-00000-of-00001", values};
    Bundle *b = NULL;
    Error *err = bundle_open(&memory_file_system, "x", &b);
    if (err) {
        error_free(err);
        return;
    }
    TensorSlice half = {.rank = 1, .start = {1}, .length = {1}};
    for (int64_t i = 0; i < bundle_count(b) && i < 50; i++) {
        Tensor *t = NULL;
        BundleEntry entry = {0};
        Str name = bundle_name(b, i);
        err = bundle_find(b, name, &entry);
        if (!err) bundle_entry_clear(&entry);
        error_free(err);
        err = bundle_read(b, name, &t);
        if (!err) tensor_unref(t);
        error_free(err);
        err = bundle_read_slice(b, name, &half, &t);
        if (!err) tensor_unref(t);
        error_free(err);
    }
    bundle_close(b);
}

/* Keys and values out of the input, checksums right: so that the entries are reached. */
static void read_made(Str input, bool old) {
    TableWriter w = {0};
    StrBuf last = {0};
    while (input.len > 3) {
        Str key = take_piece(&input), value = take_piece(&input);
        if (last.ptr && str_compare(key, strbuf_str(&last)) <= 0) break;
        last.len = 0;
        strbuf_add(&last, key);
        strbuf_addc(&last, 0);
        last.len--;
        table_writer_add(&w, key, value);
    }
    StrBuf file = table_writer_finish(&w);
    read_bundle(strbuf_str(&file), input, old);
    strbuf_clear(&file);
    strbuf_clear(&last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Str input = input_str(data, size);
    unsigned choice = take_choice(&input) % 6;
    memory_files[0] = memory_files[1] = (struct MemoryFile){0};
    if (choice == 0) {
        memory_files[0] = (struct MemoryFile){"dir/checkpoint", input};
        CheckpointState state = {0};
        error_free(checkpoint_state_read(&memory_file_system, "dir", &state));
        checkpoint_state_clear(&state);
    } else if (choice == 1) {
        Str index = take_piece(&input);
        read_bundle(index, input, false);
    } else if (choice == 4) {
        read_bundle(input, STR(""), true);
    } else {
        read_made(input, choice == 5);
    }
    return 0;
}
