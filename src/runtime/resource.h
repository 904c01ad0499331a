/* resource.h: named things that outlive a step: variables, queues, readers; kept by container and name. */
#pragma once
#include <pthread.h>

#include "base/error.h"
#include "base/refcount.h"
#include "base/str.h"
#include "tensor/tensor.h"

typedef struct Resource Resource;

typedef struct ResourceType {
    const char *type_name; /* as in ResourceHandleProto.maybe_type_name: "N10tensorflow3VarE" */
    const char *what;      /* for messages: "variable" */
    void (*destroy)(Resource *r);
    void (*cancel)(Resource *r); /* (optional) its container is cleared: whoever waits on it must be told */
} ResourceType;

/* First member of every resource. */
struct Resource {
    RefCount refs;
    const ResourceType *type;
};

void resource_init(Resource *r, const ResourceType *type);
void resource_ref(Resource *r);
void resource_unref(Resource *r); /* NULL is allowed */

/* One per device, or per session that asked for isolation. Thread-safe. */
typedef struct ResourceManager ResourceManager;

ResourceManager *resource_manager_new(Str default_container);
void resource_manager_free(ResourceManager *m);
ResourceManager *resource_manager_ref(ResourceManager *m);
Str resource_default_container(const ResourceManager *m);

/* container "" means the default one. *out gets a reference. NotFound when there is none of that type and name. */
Error *resource_find(ResourceManager *m, Str container, Str name, const ResourceType *type, Resource **out) MUST_CHECK;
/* Makes it when there is none; `create` runs without locks held and may run in vain when another thread is faster. */
typedef Error *ResourceCreate(void *arg, Resource **out);
Error *resource_find_or_create(ResourceManager *m, Str container, Str name, const ResourceType *type, ResourceCreate *create,
                               void *arg, Resource **out) MUST_CHECK;
Error *resource_add(ResourceManager *m, Str container, Str name, Resource *r) MUST_CHECK; /* keeps a reference; AlreadyExists */
Error *resource_delete(ResourceManager *m, Str container, Str name, const ResourceType *type) MUST_CHECK;
void resource_clear_container(ResourceManager *m, Str container);
void resource_clear_all(ResourceManager *m); /* every container: the process ends */
int64_t resource_count(ResourceManager *m);

/* ---- Variables ---- */

/* A mutable tensor. Of a reference variable (VariableV2) readers see the memory itself; of a resource variable
 * (VarHandleOp) they get a snapshot: writers copy first when anyone else holds the tensor, except for those that read
 * some rows and are soon done: writers wait for them, since a table may be large and most of a step's work is on it. */
typedef struct Variable {
    Resource base;
    pthread_mutex_t mutex; /* guards value */
    Tensor *value;         /* NULL: not initialised */
    DataType dtype;
    char *name; /* for messages */
    pthread_cond_t rows_free; /* with mutex: row_readers or waiting_writers has become 0 */
    int row_readers, waiting_writers;
} Variable;

extern const ResourceType variable_type;           /* of resource variables */
extern const ResourceType reference_variable_type; /* one of the same name is another one */
Variable *variable_new(DataType dtype, Str name);
Variable *reference_variable_new(DataType dtype, Str name);
Tensor *variable_read(Variable *v); /* a reference to the current tensor; NULL when not initialised */
void variable_assign(Variable *v, Tensor *value); /* keeps a reference to value */
/* To read some rows, without anything that may wait in between: as variable_read, and then the end. Waits while a writer waits. */
Tensor *variable_begin_rows(Variable *v);
void variable_end_rows(Variable *v, Tensor *value); /* value not NULL */
/* With v->mutex held, which is let go while it waits for readers of rows: makes v->value writable, copying when somebody else holds it. The value must be set. */
Error *variable_own_locked(Variable *v) MUST_CHECK;
