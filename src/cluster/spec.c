/* spec.c: cluster descriptions from flags, JSON, TF_CONFIG and protobuf. */
#include "cluster/spec.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void cluster_spec_clear(ClusterSpec *s) {
    for (int i = 0; i < s->count; i++) {
        free(s->tasks[i].job);
        free(s->tasks[i].address);
        free(s->tasks[i].name);
    }
    free(s->tasks);
    *s = (ClusterSpec){0};
}

static bool valid_job(Str job) {
    for (size_t i = 0; i < job.len; i++) {
        char c = job.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '_'))) return false;
    }
    return job.len > 0;
}

static bool valid_address(Str address) {
    ptrdiff_t colon = -1;
    for (size_t i = 0; i < address.len; i++)
        if (address.ptr[i] == ':') colon = (ptrdiff_t)i;
    int64_t port;
    return colon > 0 && str_to_int64(str_slice(address, (size_t)colon + 1, address.len), &port) && port >= 0 && port < 65536;
}

Error *cluster_spec_add(ClusterSpec *s, Str job, int index, Str address) {
    if (!valid_job(job)) return error_invalid("Job name '%.*s' is not valid: letters, digits and _, a letter first", STR_ARG(job));
    if (index < 0) return error_invalid("Task index %d of job %.*s is negative", index, STR_ARG(job));
    if (!valid_address(address)) return error_invalid("Address '%.*s' of task %.*s:%d is not host:port", STR_ARG(address), STR_ARG(job), index);
    if (cluster_spec_find(s, job, index)) return error_invalid("Task %.*s:%d is given twice", STR_ARG(job), index);
    s->tasks = vec_reserve(s->tasks, &s->capacity, (size_t)s->count + 1, sizeof *s->tasks);
    s->tasks[s->count++] = (ClusterTask){str_dup(job), index, str_dup(address), xasprintf("/job:%.*s/replica:0/task:%d", STR_ARG(job), index)};
    return NULL;
}

const ClusterTask *cluster_spec_find(const ClusterSpec *s, Str job, int index) {
    for (int i = 0; i < s->count; i++)
        if (s->tasks[i].index == index && str_is(job, s->tasks[i].job)) return &s->tasks[i];
    return NULL;
}

const ClusterTask *cluster_spec_find_name(const ClusterSpec *s, Str task_name) {
    for (int i = 0; i < s->count; i++)
        if (str_is(task_name, s->tasks[i].name)) return &s->tasks[i];
    return NULL;
}

static Error *add_job(ClusterSpec *s, const cJSON *job) {
    int position = 0;
    const cJSON *task;
    if (!cJSON_IsArray(job) && !cJSON_IsObject(job)) return error_invalid("Job '%s' must be a list or an object of addresses", job->string);
    cJSON_ArrayForEach(task, job) {
        int64_t index = position++;
        if (cJSON_IsObject(job) && !str_to_int64(str_of(task->string), &index)) return error_invalid("Job '%s': '%s' is not a task index", job->string, task->string);
        if (!cJSON_IsString(task)) return error_invalid("Job '%s': task %lld is not an address", job->string, (long long)index);
        Error *err = cluster_spec_add(s, str_of(job->string), index > 1 << 30 ? -1 : (int)index, str_of(task->valuestring));
        if (err) return err;
    }
    return NULL;
}

static Error *read_task(const cJSON *task, char **job, int *index) {
    const cJSON *type = cJSON_GetObjectItem(task, "type"), *number = cJSON_GetObjectItem(task, "index");
    int64_t value = 0;
    bool ok = cJSON_IsString(type);
    if (ok && cJSON_IsNumber(number)) value = (int64_t)number->valuedouble;
    else if (ok && cJSON_IsString(number)) ok = str_to_int64(str_of(number->valuestring), &value);
    if (!ok) return error_invalid("\"task\" needs a \"type\" and an \"index\"");
    if (job) *job = xstrdup(type->valuestring);
    if (index) *index = (int)value;
    return NULL;
}

Error *cluster_spec_from_json(Str json, ClusterSpec *out, char **job, int *index) {
    cJSON *root = cJSON_ParseWithLength(json.ptr, json.len);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return error_invalid("Cluster description is not a JSON object: %.*s", STR_ARG(str_slice(json, 0, 80)));
    }
    const cJSON *cluster = cJSON_GetObjectItem(root, "cluster"), *task = cJSON_GetObjectItem(root, "task");
    const cJSON *jobs = cJSON_IsObject(cluster) ? cluster : root;
    Error *err = NULL;
    const cJSON *item;
    cJSON_ArrayForEach(item, jobs) {
        if (!err && !(jobs == root && cJSON_IsObject(task) && item == task)) err = add_job(out, item);
    }
    if (!err && out->count == 0) err = error_invalid("Cluster description names no task");
    if (!err && jobs != root && cJSON_IsObject(task)) err = read_task(task, job, index);
    cJSON_Delete(root);
    if (err) cluster_spec_clear(out);
    return err;
}

Error *cluster_spec_add_hosts(ClusterSpec *s, Str job, Str hosts) {
    for (int i = 0; hosts.len; i++) {
        Error *err = cluster_spec_add(s, job, i, str_trim(str_next(&hosts, ',')));
        if (err) return err;
    }
    return NULL;
}

Error *cluster_spec_from_def(const Pb__ClusterDef *def, ClusterSpec *out) {
    Error *err = NULL;
    for (size_t i = 0; !err && i < def->n_job; i++) {
        const Pb__JobDef *job = def->job[i];
        for (size_t j = 0; !err && j < job->n_tasks; j++) err = cluster_spec_add(out, str_of(job->name), job->tasks[j]->key, str_of(job->tasks[j]->value));
    }
    if (err) cluster_spec_clear(out);
    return err;
}

Pb__ClusterDef *cluster_spec_to_def(const ClusterSpec *s) {
    Pb__ClusterDef *def = xmalloc(sizeof *def);
    pb__cluster_def__init(def);
    def->job = xcalloc((size_t)s->count, sizeof *def->job);
    for (int i = 0; i < s->count; i++) {
        Pb__JobDef *job = NULL;
        for (size_t j = 0; j < def->n_job; j++)
            if (strcmp(def->job[j]->name, s->tasks[i].job) == 0) job = def->job[j];
        if (!job) {
            job = def->job[def->n_job++] = xmalloc(sizeof *job);
            pb__job_def__init(job);
            job->name = xstrdup(s->tasks[i].job);
            job->tasks = xcalloc((size_t)s->count, sizeof *job->tasks);
        }
        Pb__TaskDefEntry *task = job->tasks[job->n_tasks++] = xmalloc(sizeof *task);
        pb__task_def_entry__init(task);
        task->key = s->tasks[i].index;
        task->value = xstrdup(s->tasks[i].address);
    }
    return def;
}
