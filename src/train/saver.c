/* saver.c: RillSaver: the nodes that save and restore, and the files around a checkpoint: state, graph, retention.

   Every device writes its variables by one SaveV2 to a part of its own; MergeV2Checkpoints makes one checkpoint of the parts. Partitioned variables are saved as
   slices under their whole name, so that they can be restored in other numbers of parts. Names of nodes are those of TensorFlow's Saver. */
#include "rill/saver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/bundle.h"
#include "io/checkpoint_state.h"
#include "proto/wire.h"
#include "train/graph_internal.h"

/* One part of a variable in the checkpoint. */
typedef struct SavedPart {
    const RillVariable *variable;
    const char *name;
    int part;
    int device; /* index of its group */
} SavedPart;

struct RillSaver {
    RillGraph *graph;
    RillTensor filename, saved;
    TF_Operation *restore;
    int keep;
    PathList kept; /* oldest first; empty until the first save or restore */
};

/* ---- The nodes ---- */

/* "100 8 0,50:-": the whole shape, then for each dimension the start and length, or "-" for all of it. "" for a variable in one part. */
static char *slice_spec(const RillVariable *v, int part) {
    if (v->part_count == 1) return xstrdup("");
    StrBuf b = {0};
    for (int i = 0; i < v->shape.rank; i++) strbuf_addf(&b, "%lld ", (long long)v->shape.dims[i]);
    strbuf_addf(&b, "%lld,%lld", (long long)v->parts[part].first, (long long)v->parts[part].rows);
    for (int i = 1; i < v->shape.rank; i++) strbuf_addf(&b, ":-");
    return strbuf_detach(&b);
}

typedef struct Plan {
    SavedPart *parts;
    int part_count;
    char **devices; /* of the groups */
    int device_count;
} Plan;

static int group_of(Plan *p, const char *device) {
    for (int i = 0; i < p->device_count; i++)
        if (strcmp(p->devices[i], device) == 0) return i;
    p->devices[p->device_count] = xstrdup(device);
    return p->device_count++;
}

static void plan_init(Plan *p, RillGraph *g, const RillSaverOptions *o) {
    int count = o->variables ? o->count : g->variable_count, total = 0;
    RillVariable *const *variables = o->variables ? o->variables : g->variables;
    for (int i = 0; i < count; i++) total += variables[i]->part_count;
    *p = (Plan){.parts = xcalloc((size_t)total + 1, sizeof *p->parts), .devices = xcalloc((size_t)total + 1, sizeof *p->devices)};
    for (int i = 0; i < count; i++) {
        const RillVariable *v = variables[i];
        if (!o->variables && v->is_local) continue;
        for (int j = 0; j < v->part_count; j++)
            p->parts[p->part_count++] = (SavedPart){v, o->names ? o->names[i] : v->name, j, group_of(p, o->one_file ? "" : TF_OperationDevice(v->parts[j].handle.oper))};
    }
}

static void plan_clear(Plan *p) {
    for (int i = 0; i < p->device_count; i++) free(p->devices[i]);
    free(p->devices);
    free(p->parts);
}

/* Names, slices and, of the parts of one group: [0] its names, [1] its slices as constants; the parts go to `members`. */
static int group_members(RillGraph *g, const Plan *p, int group, const SavedPart **members, RillTensor lists[2]) {
    const char **names = xcalloc((size_t)p->part_count + 1, sizeof *names);
    char **slices = xcalloc((size_t)p->part_count + 1, sizeof *slices);
    int n = 0;
    for (int i = 0; i < p->part_count; i++) {
        if (p->parts[i].device != group) continue;
        members[n] = &p->parts[i];
        names[n] = p->parts[i].name;
        slices[n++] = slice_spec(p->parts[i].variable, p->parts[i].part);
    }
    lists[0] = rill_const_strings(g, names, n);
    lists[1] = rill_const_strings(g, (const char *const *)slices, n);
    for (int i = 0; i < n; i++) free(slices[i]);
    free(slices);
    free(names);
    return n;
}

static TF_Operation *save_group(RillGraph *g, const Plan *p, int group, RillTensor prefix) {
    const SavedPart **members = xcalloc((size_t)p->part_count + 1, sizeof *members);
    RillTensor *in = xcalloc((size_t)p->part_count + 3, sizeof *in);
    rill_device_push(g, p->devices[group]);
    int n = group_members(g, p, group, members, in + 1);
    in[0] = prefix;
    for (int i = 0; i < n; i++) {
        RillTensor handle = members[i]->variable->parts[members[i]->part].handle;
        in[3 + i] = rill_op(g, "ReadVariableOp", NULL, &handle, 1, (RillAttr[]){RILL_TYPE("dtype", members[i]->variable->type)}, 1);
    }
    TF_Operation *save = rill_operation(g, "SaveV2", NULL, in, n + 3, NULL, 0);
    rill_device_pop(g);
    free(in);
    free(members);
    return save;
}

static TF_Operation *restore_group(RillGraph *g, const Plan *p, int group, RillTensor prefix) {
    const SavedPart **members = xcalloc((size_t)p->part_count + 1, sizeof *members);
    TF_DataType *types = xcalloc((size_t)p->part_count + 1, sizeof *types);
    TF_Operation **assigns = xcalloc((size_t)p->part_count + 1, sizeof *assigns);
    RillTensor in[3] = {prefix};
    rill_device_push(g, p->devices[group]);
    int n = group_members(g, p, group, members, in + 1);
    for (int i = 0; i < n; i++) types[i] = members[i]->variable->type;
    TF_Operation *values = rill_operation(g, "RestoreV2", NULL, in, 3, (RillAttr[]){RILL_TYPES("dtypes", types, n)}, 1);
    for (int i = 0; values && i < n; i++)
        assigns[i] = rill_operation(g, "AssignVariableOp", NULL, (RillTensor[]){members[i]->variable->parts[members[i]->part].handle, {values, i}}, 2, NULL, 0);
    TF_Operation *all = rill_group(g, "restore_shard", assigns, n);
    rill_device_pop(g);
    free(assigns);
    free(types);
    free(members);
    return all;
}

/* Several groups: parts under a temporary name, then one checkpoint of them. */
static TF_Operation *save_sharded(RillGraph *g, const Plan *p, RillTensor filename) {
    char unique[64];
    snprintf(unique, sizeof unique, "_temp_%d_%llx/part", (int)getpid(), (unsigned long long)clock_wall_ns());
    RillTensor temp = rill_op(g, "StringJoin", NULL, (RillTensor[]){filename, rill_const_string(g, unique)}, 2, NULL, 0);
    RillTensor *prefixes = xcalloc((size_t)p->device_count + 1, sizeof *prefixes), count = rill_const_i32(g, p->device_count);
    TF_Operation **saves = xcalloc((size_t)p->device_count + 1, sizeof *saves);
    for (int i = 0; i < p->device_count; i++) {
        prefixes[i] = rill_op(g, "ShardedFilename", NULL, (RillTensor[]){temp, rill_const_i32(g, i), count}, 3, NULL, 0);
        saves[i] = save_group(g, p, i, prefixes[i]);
    }
    rill_device_push(g, p->devices[0]);
    rill_control_push(g, saves, p->device_count);
    RillTensor all = rill_stack(g, prefixes, p->device_count, 0);
    TF_Operation *merge = rill_operation(g, "MergeV2Checkpoints", NULL, (RillTensor[]){all, filename}, 2, NULL, 0);
    rill_control_pop(g);
    rill_device_pop(g);
    free(saves);
    free(prefixes);
    return merge;
}

RillSaver *rill_saver_new(RillGraph *g, const RillSaverOptions *options) {
    static const RillSaverOptions none;
    const RillSaverOptions *o = options ? options : &none;
    if (rill_graph_failed(g)) return NULL;
    RillSaver *s = xcalloc(1, sizeof *s);
    s->graph = g;
    s->keep = o->keep ? o->keep : 5;
    Plan p;
    plan_init(&p, g, o);
    int controls = g->control_base;
    g->control_base = g->control_count;
    rill_name_push(g, "save");
    RillTensor standard = rill_const_string(g, "model");
    s->filename = rill_op(g, "PlaceholderWithDefault", "filename", &standard, 1, (RillAttr[]){RILL_DIMS("shape", NULL, 0)}, 1);
    if (!p.part_count) rill_graph_fail(g, TF_FAILED_PRECONDITION, "There are no variables to save");
    TF_Operation **restores = xcalloc((size_t)p.device_count + 1, sizeof *restores);
    TF_Operation *save = rill_graph_failed(g) ? NULL : p.device_count == 1 ? save_group(g, &p, 0, s->filename) : save_sharded(g, &p, s->filename);
    for (int i = 0; !rill_graph_failed(g) && i < p.device_count; i++) restores[i] = restore_group(g, &p, i, s->filename);
    rill_control_push(g, &save, 1);
    s->saved = rill_identity(g, s->filename, "control_dependency");
    rill_control_pop(g);
    s->restore = rill_group(g, "restore_all", restores, p.device_count);
    rill_name_pop(g);
    g->control_base = controls;
    free(restores);
    plan_clear(&p);
    if (!rill_graph_failed(g)) return s;
    rill_saver_free(s);
    return NULL;
}

void rill_saver_free(RillSaver *s) {
    if (!s) return;
    path_list_clear(&s->kept);
    free(s);
}

/* ---- Around the checkpoint ---- */

static void put_path(StrBuf *b, const char *field, const char *directory, const char *prefix) {
    size_t len = strlen(directory);
    bool inside = strncmp(prefix, directory, len) == 0 && prefix[len] == '/';
    strbuf_addf(b, "%s: \"", field);
    for (const char *c = inside ? prefix + len + 1 : prefix; *c; c++) strbuf_addf(b, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    strbuf_addf(b, "\"\n");
}

static Error *write_state(const RillSaver *s, const char *prefix) {
    const FileSystem *fs = &file_system_local;
    char *directory = path_dir(prefix), *path = xasprintf("%s/checkpoint", directory), *temporary = xasprintf("%s.tmp%d", path, (int)getpid());
    StrBuf b = {0};
    put_path(&b, "model_checkpoint_path", directory, prefix);
    for (size_t i = 0; i < s->kept.count; i++) put_path(&b, "all_model_checkpoint_paths", directory, s->kept.items[i]);
    Error *err = file_write_all(fs, temporary, strbuf_str(&b));
    if (!err) err = fs->rename(temporary, path);
    if (!err) err = fs->sync_dir(directory);
    strbuf_clear(&b);
    free(temporary);
    free(path);
    free(directory);
    return err;
}

/* MetaGraphDef: meta_info_def=1 {tensorflow_version=5} graph_def=2 saver_def=3. */
static Error *write_meta(RillSaver *s, const char *prefix) {
    TF_Buffer *graph = TF_NewBuffer();
    TF_Status *status = TF_NewStatus();
    TF_GraphToGraphDef(s->graph->tf, graph, status);
    StrBuf meta = {0}, part = {0};
    wire_put_bytes(&part, 5, str_of(TF_Version()));
    wire_put_bytes(&meta, 1, strbuf_str(&part));
    wire_put_bytes(&meta, 2, (Str){graph->data, graph->length});
    part.len = 0;
    char *filename = xasprintf("%s:0", TF_OperationName(s->filename.oper)), *saved = xasprintf("%s:0", TF_OperationName(s->saved.oper));
    wire_put_bytes(&part, 1, str_of(filename));
    wire_put_bytes(&part, 2, str_of(saved));
    wire_put_bytes(&part, 3, str_of(TF_OperationName(s->restore)));
    wire_put_uint(&part, 4, s->keep > 0 ? (uint64_t)s->keep : 0);
    wire_put_uint(&part, 7, 2); /* V2 */
    wire_put_bytes(&meta, 3, strbuf_str(&part));
    char *path = xasprintf("%s.meta", prefix);
    Error *err = TF_GetCode(status) == TF_OK ? file_write_all(&file_system_local, path, strbuf_str(&meta)) : error_new((ErrorCode)TF_GetCode(status), "%s", TF_Message(status));
    free(path);
    free(saved);
    free(filename);
    strbuf_clear(&meta);
    strbuf_clear(&part);
    TF_DeleteStatus(status);
    TF_DeleteBuffer(graph);
    return err;
}

static void delete_checkpoint(const char *prefix) {
    PathList files = {0};
    char *pattern = xasprintf("%s.data-*", prefix);
    error_free(file_glob(&file_system_local, pattern, &files));
    free(pattern);
    for (size_t i = 0; i < files.count; i++) error_free(file_system_local.remove(files.items[i]));
    path_list_clear(&files);
    static const char *const ends[] = {"index", "meta"};
    for (size_t i = 0; i < 2; i++) {
        char *path = xasprintf("%s.%s", prefix, ends[i]);
        error_free(file_system_local.remove(path));
        free(path);
    }
}

/* What an earlier run left counts as well. */
static void remember_old(RillSaver *s, const char *prefix) {
    if (s->kept.count) return;
    char *directory = path_dir(prefix);
    CheckpointState state = {0};
    Error *err = checkpoint_state_read(&file_system_local, directory, &state);
    for (size_t i = 0; !err && i < state.all.count; i++) path_list_add(&s->kept, state.all.items[i]);
    if (!err) checkpoint_state_clear(&state);
    error_free(err);
    free(directory);
}

static void drop_kept(RillSaver *s, size_t i) {
    free(s->kept.items[i]);
    memmove(&s->kept.items[i], &s->kept.items[i + 1], (s->kept.count - i - 1) * sizeof *s->kept.items);
    s->kept.count--;
}

static Error *note_saved(RillSaver *s, const char *prefix) {
    remember_old(s, prefix);
    for (size_t i = s->kept.count; i-- > 0;)
        if (strcmp(s->kept.items[i], prefix) == 0) drop_kept(s, i);
    path_list_add(&s->kept, prefix);
    PathList old = {0};
    while (s->keep > 0 && s->kept.count > (size_t)s->keep) {
        path_list_add(&old, s->kept.items[0]);
        drop_kept(s, 0);
    }
    Error *err = write_meta(s, prefix);
    if (!err) err = write_state(s, prefix);
    for (size_t i = 0; !err && i < old.count; i++) delete_checkpoint(old.items[i]); /* only now that nothing points to them */
    path_list_clear(&old);
    return err;
}

char *rill_saver_save(RillSaver *s, RillSession *session, const char *path, int64_t step, TF_Status *status) {
    char *prefix = step < 0 ? xstrdup(path) : xasprintf("%s-%lld", path, (long long)step), *directory = path_dir(prefix);
    Error *err = file_system_local.make_dir(directory);
    free(directory);
    TF_Tensor *name = rill_value_string(prefix);
    if (!err) {
        RillFeed feed = {s->filename, name};
        TF_Operation *target = s->saved.oper;
        if (rill_session_run(session, &(RillStep){.feeds = &feed, .feed_count = 1, .targets = &target, .target_count = 1}, status) == TF_OK) err = note_saved(s, prefix);
    }
    TF_DeleteTensor(name);
    if (err) TF_SetStatus(status, (TF_Code)err->code, err->message);
    error_free(err);
    if (TF_GetCode(status) == TF_OK) return prefix;
    free(prefix);
    return NULL;
}

TF_Code rill_saver_restore(RillSaver *s, RillSession *session, const char *prefix, TF_Status *status) {
    TF_Tensor *name = rill_value_string(prefix);
    RillFeed feed = {s->filename, name};
    rill_session_run(session, &(RillStep){.feeds = &feed, .feed_count = 1, .targets = &s->restore, .target_count = 1}, status);
    TF_DeleteTensor(name);
    return TF_GetCode(status);
}

/* Whole: its index can be read and every data file is there. */
static bool is_whole(const char *prefix) {
    Bundle *b = NULL;
    Error *err = bundle_open(&file_system_local, prefix, &b);
    bool ok = !err;
    error_free(err);
    if (b) bundle_close(b);
    PathList files = {0};
    char *pattern = xasprintf("%s.data-*", prefix);
    error_free(file_glob(&file_system_local, pattern, &files));
    free(pattern);
    int expected = 0;
    if (files.count) sscanf(strrchr(files.items[0], '-'), "-%d", &expected);
    ok &= files.count > 0 && (size_t)expected == files.count;
    path_list_clear(&files);
    return ok;
}

char *rill_latest_checkpoint(const char *directory) {
    CheckpointState state = {0};
    Error *err = checkpoint_state_read(&file_system_local, directory, &state);
    if (err) {
        error_free(err);
        return NULL;
    }
    char *found = state.latest && is_whole(state.latest) ? xstrdup(state.latest) : NULL;
    for (size_t i = state.all.count; !found && i-- > 0;)
        if (is_whole(state.all.items[i])) found = xstrdup(state.all.items[i]);
    checkpoint_state_clear(&state);
    return found;
}
