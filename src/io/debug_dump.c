/* debug_dump.c: events of the debugger, one to a file.

   Event: wall_time=1 (here in microseconds) graph_def=4 summary=5 log_message=6. LogMessage: message=2. Summary: value=1. Value: tag=1 node_name=7 tensor=8
   metadata=9. SummaryMetadata: plugin_data=1. PluginData: plugin_name=1 content=2. */
#include "io/debug_dump.h"

#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/memory.h"
#include "proto/wire.h"

bool debug_url_is(Str url, const char *scheme, Str *rest) {
    Str s = str_of(scheme);
    if (url.len < s.len || strncasecmp(url.ptr, scheme, s.len)) return false;
    *rest = str_slice(url, s.len, url.len);
    return true;
}

static void put_dir(StrBuf *path, Str root, Str device) {
    strbuf_addf(path, "%.*s/_tfdbg_device_", STR_ARG(root));
    for (size_t i = 0; i < device.len; i++) strbuf_addc(path, device.ptr[i] == '/' ? ',' : device.ptr[i] == ':' ? '_' : device.ptr[i]);
    strbuf_addc(path, '/');
}

static Error *write_event(const FileSystem *fs, const char *path, int64_t wall_us, uint32_t field, Str content) {
    StrBuf event = {0};
    wire_put_double(&event, 1, (double)wall_us);
    wire_put_bytes(&event, field, content);
    char *dir = path_dir(path);
    Error *err = fs->make_dir(dir);
    if (!err) err = file_write_all(fs, path, strbuf_str(&event));
    free(dir);
    strbuf_clear(&event);
    return err;
}

/* The path with the time at its end, and a number after it where that is taken: nodes of a loop run often. */
static char *stamped(const FileSystem *fs, Str path, int64_t wall_us) {
    char *stamp = xasprintf("%.*s_%lld", STR_ARG(path), (long long)wall_us);
    for (int i = 1; fs->exists(stamp); i++) {
        free(stamp);
        stamp = xasprintf("%.*s_%lld-%d", STR_ARG(path), (long long)wall_us, i);
    }
    return stamp;
}

static void put_value(StrBuf *summary, const DebugKey *key, Str tensor) {
    StrBuf name = {0}, json = {0}, plugin = {0}, metadata = {0}, value = {0};
    strbuf_addf(&name, "%.*s:%d:%.*s", STR_ARG(key->node), key->slot, STR_ARG(key->op));
    strbuf_addf(&json, "{\"device\":\"%.*s\",\"outputSlot\":%d,\"numChunks\":1,\"chunkIndex\":0}", STR_ARG(key->device), key->slot);
    wire_put_bytes(&plugin, 1, STR("debugger"));
    wire_put_bytes(&plugin, 2, strbuf_str(&json));
    wire_put_bytes(&metadata, 1, strbuf_str(&plugin));
    wire_put_bytes(&value, 1, key->node);
    wire_put_bytes(&value, 7, strbuf_str(&name));
    wire_put_bytes(&value, 8, tensor);
    wire_put_bytes(&value, 9, strbuf_str(&metadata));
    wire_put_bytes(summary, 1, strbuf_str(&value));
    strbuf_clear(&name);
    strbuf_clear(&json);
    strbuf_clear(&plugin);
    strbuf_clear(&metadata);
    strbuf_clear(&value);
}

static void put_path(StrBuf *path, Str root, const DebugKey *key) {
    if (!key->io_of_node.len) {
        put_dir(path, root, key->device);
        strbuf_addf(path, "%.*s_%d_%.*s", STR_ARG(key->node), key->slot, STR_ARG(key->op));
        return;
    }
    strbuf_addf(path, "%.*s/node-io-dump/step-%lld/", STR_ARG(root), (long long)key->step);
    for (size_t i = 0; i < key->io_of_node.len; i++) strbuf_addc(path, key->io_of_node.ptr[i] == '/' ? '-' : key->io_of_node.ptr[i]);
    strbuf_addf(path, ":%s:%d", key->is_input ? "in" : "out", key->io_index);
}

Error *debug_dump_tensor(const FileSystem *fs, Str root, const DebugKey *key, Str value) {
    StrBuf path = {0}, summary = {0};
    int64_t now = clock_wall_us();
    put_path(&path, root, key);
    put_value(&summary, key, value);
    char *file = stamped(fs, strbuf_str(&path), now);
    Error *err = write_event(fs, file, now, 5, strbuf_str(&summary));
    free(file);
    strbuf_clear(&summary);
    strbuf_clear(&path);
    return err;
}

Error *debug_dump_graph(const FileSystem *fs, Str root, Str device, Str graph_def) {
    StrBuf path = {0};
    int64_t now = clock_wall_us();
    put_dir(&path, root, device);
    strbuf_addf(&path, "_tfdbg_graph_hash%llu_%lld", (unsigned long long)hash64(graph_def), (long long)now);
    Error *err = write_event(fs, path.ptr, now, 4, graph_def);
    strbuf_clear(&path);
    return err;
}

Error *debug_dump_run(const FileSystem *fs, Str root, int64_t run, Str json) {
    StrBuf path = {0}, message = {0};
    int64_t now = clock_wall_us();
    strbuf_addf(&path, "%.*s/_tfdbg_core_metadata_sessionrun%.14lld", STR_ARG(root), (long long)run);
    wire_put_bytes(&message, 2, json);
    char *file = stamped(fs, strbuf_str(&path), now);
    Error *err = write_event(fs, file, now, 6, strbuf_str(&message));
    free(file);
    strbuf_clear(&message);
    strbuf_clear(&path);
    return err;
}
