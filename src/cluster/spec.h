/* spec.h: ClusterSpec, the jobs of a cluster, their tasks and addresses. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "proto/config.pb-c.h"

typedef struct ClusterTask {
    char *job;
    int index;
    char *address; /* "host:port" */
    char *name;    /* "/job:ps/replica:0/task:0" */
} ClusterTask;

typedef struct ClusterSpec {
    ClusterTask *tasks; /* by job as given, then by index */
    int count;
    size_t capacity;
} ClusterSpec;

void cluster_spec_clear(ClusterSpec *s);
/* InvalidArgument names the job or task that is given twice or has no valid name or address. */
Error *cluster_spec_add(ClusterSpec *s, Str job, int index, Str address) MUST_CHECK;
const ClusterTask *cluster_spec_find(const ClusterSpec *s, Str job, int index);
const ClusterTask *cluster_spec_find_name(const ClusterSpec *s, Str task_name);

/* {"ps": ["host:port", ...], "worker": {"0": "host:port"}}, or TF_CONFIG's {"cluster": {...}, "task": {"type": , "index": }}; the task goes to
 * *job (malloced) and *index when given and asked for. */
Error *cluster_spec_from_json(Str json, ClusterSpec *out, char **job, int *index) MUST_CHECK;
Error *cluster_spec_add_hosts(ClusterSpec *s, Str job, Str comma_separated) MUST_CHECK; /* --ps_hosts a:1,b:2 */
Error *cluster_spec_from_def(const Pb__ClusterDef *def, ClusterSpec *out) MUST_CHECK;
/* The protobuf form, malloced with everything it holds; free with pb__cluster_def__free_unpacked(def, NULL). */
Pb__ClusterDef *cluster_spec_to_def(const ClusterSpec *s);
