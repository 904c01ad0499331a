/* malformed_test.c: every kernel is called with malformed arguments and attributes; it must answer with a status, never crash, leak or spin.

   usage: malformed_test [--all] [--leaks] [--one] [OP...]. --all: every row for every call (minutes), else a sample that is the same in every run. --leaks:
   looks for leaks after each op. --one: in this process, for a debugger.

   The calls are those of calls.bin (valid ones, recorded from TensorFlow; scripts/record_calls.py) and, for ops without one, invented from the op's definition.
   Of each call one argument after the other is replaced by each row of the table (malformed_values.h), each attribute by extreme ones (malformed_attrs.h),
   each handle by others; then pairs by chance. Children do the work: the parent names the call that killed one and goes on behind it. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "malformed_call.h"
#include "malformed_unrecorded.h"
#include "ops/op_list.h"

enum { CODES = CODE_UNAUTHENTICATED + 1, MAX_DEATHS_PER_OP = 3, CPU_LIMIT_S = 10, WALL_LIMIT_S = 120, WAIT_MS = 5, SAMPLE = 14, RANDOM_CALLS = 16 };

#if defined(__SANITIZE_ADDRESS__)

int __lsan_do_recoverable_leak_check(void);
/* A large allocation fails instead of taking the machine's memory. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=64:hard_rss_limit_mb=3000:quarantine_size_mb=8:handle_abort=1:detect_leaks=1:print_summary=1:malloc_context_size=9";
}
#else
static int __lsan_do_recoverable_leak_check(void) { return 0; }
#endif

/* Shared by a child and the parent. */
typedef struct Progress {
    _Atomic int op;          /* index of the op at work */
    _Atomic long case_number;
    char what[400];
    long calls, ok, failed_graphs;
    long codes[CODES];
    long ops;
} Progress;

typedef struct Options {
    bool all, leaks, one;
    char **names;
    int name_count;
} Options;

typedef struct Worker {
    const Options *options;
    Progress *progress;
    long number, resume; /* of the case; those up to `resume` are behind us */
    const OpInfo *op;
    const char *call_kind;
    char change[200];
} Worker;

/* The recorded calls: a message whose field 1 is a GraphDef. */
static Str recorded;

static bool next_case(Worker *w, const char *what) {
    if (++w->number <= w->resume) return false;
    snprintf(w->progress->what, sizeof w->progress->what, "%.*s (%s), %s: %s", STR_ARG(w->op->name), w->call_kind, w->change, what);
    atomic_store(&w->progress->case_number, w->number);
    return true;
}

static void count_result(Worker *w, Error *err) {
    w->progress->calls++;
    if (err)
        w->progress->codes[err->code]++;
    else
        w->progress->ok++;
    error_free(err);
}

static bool may_wait(const OpInfo *op) {
    for (int i = 0; i < kernel_count(); i++)
        if (str_is(op->name, kernel_at(i)->op)) return kernel_at(i)->flags & KERNEL_DEFERS;
    return true;
}

static Error *run(Prepared *p, Tensor **feeds, const char *target, int64_t timeout_ms) {
    Str names[2 * MAX_INPUTS], targets[] = {str_of(target)};
    for (int i = 0; i < p->feed_count; i++) names[i] = str_of(p->names[i]);
    bool needs_feeds = strcmp(target, "next") != 0;
    RunSignature sig = {.feeds = names, .targets = targets, .feed_count = needs_feeds ? p->feed_count : 0, .target_count = 1};
    return direct_session_run(p->session, &sig, feeds, NULL, timeout_ms);
}

/* One call; of a dataset also three of its elements. */
static void run_case(Worker *w, Prepared *p, Tensor **feeds) {
    int64_t timeout_ms = may_wait(w->op) || p->has_iterator ? WAIT_MS : 1000 * WALL_LIMIT_S;
    Error *err = run(p, feeds, p->has_iterator ? "make" : "x", timeout_ms);
    bool more = !err && p->has_iterator;
    count_result(w, err);
    for (int i = 0; more && i < 3; i++) error_free(run(p, feeds, "next", 50));
}

static bool in_sample(const Worker *w, uint64_t key, int share) {
    return w->options->all || mix(key ^ str_hash(w->op->name)) % 100 < (uint64_t)share;
}

/* Opened when the first case of a group is run. */
static bool prepared(Worker *w, const Call *c, const Change *change, Prepared *p, bool *tried) {
    if (!*tried) {
        *tried = true;
        Error *err = call_prepare(c, change, p);
        if (err) {
            w->progress->failed_graphs++;
            count_result(w, err);
        }
    }
    return p->session != NULL;
}

static void run_with(Worker *w, const Call *c, const Change *change, Prepared *p, bool *tried, const int *rows, const char *what) {
    if (!next_case(w, what) || !prepared(w, c, change, p, tried)) return;
    Tensor *feeds[2 * MAX_INPUTS] = {NULL};
    for (int i = 0; i < p->feed_count; i++) {
        feeds[i] = malformed_tensor(&patterns[rows[i]], p->valid[i]);
        if (!feeds[i]) feeds[i] = tensor_ref(p->valid[i]);
    }
    run_case(w, p, feeds);
    for (int i = 0; i < p->feed_count; i++) tensor_unref(feeds[i]);
}

/* The whole table for each argument, then combinations. */
static void vary_values(Worker *w, const Call *c, const Change *change, int share, int combinations) {
    Prepared p = {0};
    bool tried = false;
    int rows[2 * MAX_INPUTS] = {0};
    char what[120];
    run_with(w, c, change, &p, &tried, rows, "valid arguments");
    int feed_count = c->x->input_count < MAX_INPUTS ? 2 * c->x->input_count : 2 * MAX_INPUTS; /* as many numbers in every run */
    for (int i = 0; i < feed_count; i++) {
        for (int row = 1; row < PATTERN_COUNT; row++) {
            if (!in_sample(w, (uint64_t)(i * 1000 + row), share)) continue;
            rows[i] = row;
            snprintf(what, sizeof what, "argument %d %s", i, patterns[row].name);
            if (p.session && i >= p.feed_count) w->number++;
            else run_with(w, c, change, &p, &tried, rows, what);
            rows[i] = 0;
        }
    }
    for (int n = 0; n < combinations; n++) {
        StrBuf text = {0};
        for (int i = 0; i < feed_count; i++) {
            uint64_t chance = mix(mix((uint64_t)n * 64 + (uint64_t)i) ^ str_hash(w->op->name));
            rows[i] = chance % 3 ? (int)((chance >> 8) % PATTERN_COUNT) : 0;
            if (rows[i]) strbuf_addf(&text, "%s%d %s", text.len ? "; " : "arguments: ", i, patterns[rows[i]].name);
        }
        run_with(w, c, change, &p, &tried, rows, strbuf_str(&text).ptr);
        memset(rows, 0, sizeof rows);
        strbuf_clear(&text);
    }
    prepared_clear(&p);
}

/* Tensors of a type other than the one that was declared. */
static void vary_fed_types(Worker *w, const Call *c) {
    Prepared p = {0};
    bool tried = false;
    snprintf(w->change, sizeof w->change, "fed with another type");
    for (int i = 0; i < c->x->input_count && i < MAX_INPUTS; i++) {
        static const DataType others[] = {DT_INT8, DT_STRING, DT_COMPLEX128, DT_RESOURCE};
        for (int t = 0; t < 4; t++) {
            if (!next_case(w, dtype_name(others[t])) || !prepared(w, c, &NO_CHANGE, &p, &tried) || i >= p.feed_count) continue;
            Tensor *feeds[2 * MAX_INPUTS], *other = NULL;
            memcpy(feeds, p.valid, sizeof feeds);
            error_free(tensor_new(others[t], &p.valid[i]->shape, &other));
            if (other && dtype_is_plain(other->dtype)) memset(other->data, 0, tensor_bytes(other));
            if (other) feeds[i] = other;
            run_case(w, &p, feeds);
            tensor_unref(other);
        }
    }
    prepared_clear(&p);
}

static void vary_handles(Worker *w, const Call *c) {
    for (int i = 0; i < c->x->input_count; i++) {
        DataType type = dtype_base(c->x->input_types[i]);
        if (type != DT_RESOURCE && type != DT_VARIANT) continue;
        for (int row = 0; row < BAD_HANDLES + 4; row++) {
            snprintf(w->change, sizeof w->change, "input %d with handle %d", i, row);
            vary_values(w, c, &(Change){.handle_input = i, .handle_row = row}, 0, 1);
        }
    }
    snprintf(w->change, sizeof w->change, "variables without values");
    vary_values(w, c, &(Change){.handle_input = -1, .leave_variables = true}, 0, 0);
}

static void vary_attrs(Worker *w, const Call *c) {
    for (int i = 0; i < c->op->attr_count; i++) {
        for (int row = 0;; row++) {
            StrBuf value = {0};
            if (!extreme_attr(&c->op->attrs[i], row, &value)) break;
            snprintf(w->change, sizeof w->change, "attribute %.*s at extreme %d", STR_ARG(c->op->attrs[i].name), row);
            Change change = {.attr = &c->op->attrs[i], .value = strbuf_str(&value), .handle_input = -1};
            vary_values(w, c, &change, w->options->all ? 20 : 0, w->options->all ? 4 : row % 3 == 0);
            strbuf_clear(&value);
        }
    }
}

/* The other types of the op: fewer rows, by chance. */
static void vary_types(Worker *w, const Call *c) {
    for (int i = 0; i < c->op->attr_count; i++) {
        const AttrInfo *attr = &c->op->attrs[i];
        if (!str_is(attr->type, "type")) continue;
        for (int t = 0; allowed_type(attr, t) != DT_INVALID; t++) {
            DataType type = allowed_type(attr, t);
            snprintf(w->change, sizeof w->change, "%.*s = %s", STR_ARG(attr->name), dtype_name(type));
            vary_values(w, c, &(Change){.retyped = attr, .type = type, .handle_input = -1}, w->options->all ? 100 : 2, w->options->all ? 10 : 3);
        }
    }
}

static void vary_call(Worker *w, const Call *c, bool first) {
    snprintf(w->change, sizeof w->change, "as recorded");
    vary_values(w, c, &NO_CHANGE, first ? 3 * SAMPLE : SAMPLE, RANDOM_CALLS);
    if (!first && !w->options->all) return;
    vary_fed_types(w, c);
    vary_handles(w, c);
    vary_attrs(w, c);
    vary_types(w, c);
}

static bool is_wanted(const Options *o, const OpInfo *op) {
    bool wanted = o->name_count == 0;
    for (int i = 0; i < o->name_count; i++) wanted |= str_is(op->name, o->names[i]);
    return wanted && kernel_exists(op->name) && !str_is(op->name, "Abort");
}

static void vary_op(Worker *w) {
    int found = 0;
    w->number = 0;
    WireReader r = wire_reader(recorded);
    StrBuf invented = {0};
    while (wire_next(&r)) {
        Call c;
        w->call_kind = "recorded";
        /* Only calls of this op are worth reading: its name stands in the bytes. */
        if (!memmem(r.bytes.ptr, r.bytes.len, w->op->name.ptr, w->op->name.len)) continue;
        bool ok = call_read(r.bytes, &c);
        if (ok && c.op == w->op) vary_call(w, &c, found++ == 0);
        call_clear(&c);
    }
    if (!found) {
        Call c;
        w->call_kind = "invented";
        call_invent(w->op, &invented);
        if (call_read(strbuf_str(&invented), &c)) vary_call(w, &c, true);
        call_clear(&c);
        strbuf_clear(&invented);
    }
}

/* ---- The child ---- */

static void child(const Options *options, Progress *progress, int shard, int shards, int first_op, long resume) {
    for (int i = first_op; i < op_count(); i++) {
        if (i % shards != shard || !is_wanted(options, op_at(i))) continue;
        atomic_store(&progress->op, i);
        Worker w = {.options = options, .progress = progress, .op = op_at(i), .resume = i == first_op ? resume : 0, .call_kind = ""};
        vary_op(&w);
        progress->ops++;
        snprintf(progress->what, sizeof progress->what, "%.*s: memory", STR_ARG(w.op->name));
        atomic_store(&progress->case_number, w.number + 1);
        if (options->leaks && __lsan_do_recoverable_leak_check()) _exit(7);
    }
    snprintf(progress->what, sizeof progress->what, "the end: memory that nobody freed");
    atomic_store(&progress->op, op_count());
}

static void enter_child(const char *dir, const char *log) {
    struct rlimit core = {0, 0};
    setrlimit(RLIMIT_CORE, &core);
#if !defined(__SANITIZE_ADDRESS__)
    struct rlimit memory = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
    int fd = open(log, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    close(fd);
    if (chdir(dir) != 0) _exit(9);
}

/* ---- The parent ---- */

typedef struct Shard {
    pid_t pid;
    Progress *progress;
    char dir[64], log[96];
    int first_op, deaths;
    long resume, seen_case;
    int seen_op;
    double cpu_start;
    int64_t wall_start_ns;
    bool spun;
} Shard;

static double cpu_seconds(pid_t pid) {
    clockid_t id;
    struct timespec t;
    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &t) != 0) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void start_shard(const Options *o, Shard *s, int index, int count) {
    fflush(stdout);
    s->seen_case = -1;
    s->spun = false;
    s->pid = fork();
    if (s->pid != 0) return;
    enter_child(s->dir, s->log);
    child(o, s->progress, index, count, s->first_op, s->resume);
    exit(0);
}

/* A call that takes too long is a death, too. */
static void watch(Shard *s) {
    long now = atomic_load(&s->progress->case_number);
    int op = atomic_load(&s->progress->op);
    if (now != s->seen_case || op != s->seen_op) {
        s->seen_case = now;
        s->seen_op = op;
        s->cpu_start = cpu_seconds(s->pid);
        s->wall_start_ns = clock_mono_ns();
    } else if (!s->spun && (cpu_seconds(s->pid) - s->cpu_start > CPU_LIMIT_S || clock_mono_ns() - s->wall_start_ns > WALL_LIMIT_S * (int64_t)1000000000)) {
        s->spun = true;
        kill(s->pid, SIGABRT);
    } else if (s->spun && clock_mono_ns() - s->wall_start_ns > (WALL_LIMIT_S + 60) * (int64_t)1000000000) {
        kill(s->pid, SIGKILL);
    }
}

static void print_log(const char *path) {
    FILE *f = fopen(path, "r");
    char line[1000];
    int shown = 0;
    bool on = false, on_leak = false;
    while (f && fgets(line, sizeof line, f) && shown < (on_leak ? 400 : 24)) {
        on |= strstr(line, "ERROR:") || strstr(line, "runtime error") || strstr(line, "out of memory") || strstr(line, "LeakSanitizer");
        on_leak |= strstr(line, "LeakSanitizer") != NULL;
        if (on && line[0] != '\n') printf("      %s", line), shown++;
    }
    if (f) fclose(f);
}

/* Says what killed the child; false when there is nothing left for another one. */
static bool bury(Shard *s, int status) {
    int op = atomic_load(&s->progress->op);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
    printf("FAIL %s: %s\n", s->progress->what, s->spun ? "takes too long" : WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended");
    print_log(s->log);
    fflush(stdout);
    if (op >= op_count()) return false;
    s->deaths = op == s->first_op ? s->deaths + 1 : 1;
    s->first_op = op;
    s->resume = atomic_load(&s->progress->case_number);
    if (s->deaths >= MAX_DEATHS_PER_OP) {
        printf("     the rest of %.*s is left out\n", STR_ARG(op_at(op)->name));
        s->first_op = op + 1;
        s->resume = 0;
        s->deaths = 0;
    }
    return true;
}

static int run_shards(const Options *o, Shard *shards, int count) {
    int running = 0, failures = 0;
    for (int i = 0; i < count; i++) {
        Shard *s = &shards[i];
        *s = (Shard){.progress = mmap(NULL, sizeof *s->progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
        snprintf(s->dir, sizeof s->dir, "/tmp/rill-malformed-XXXXXX");
        if (!mkdtemp(s->dir)) exit(2);
        snprintf(s->log, sizeof s->log, "%s.log", s->dir);
        start_shard(o, s, i, count);
        running++;
    }
    while (running) {
        for (int i = 0; i < count; i++) {
            int status;
            if (!shards[i].pid) continue;
            pid_t pid = waitpid(shards[i].pid, &status, WNOHANG);
            if (pid == 0) {
                watch(&shards[i]);
                continue;
            }
            shards[i].pid = 0;
            failures += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            if (bury(&shards[i], status))
                start_shard(o, &shards[i], i, count);
            else
                running--;
        }
        usleep(20000); /* between looks at the clocks */
    }
    return failures;
}

/* Kernels by type; one that serves any type counts once. */
static int op_types(void) {
    int n = 0;
    for (int i = 0; i < kernel_count(); i++) {
        n += kernel_at(i)->run != NULL;
        for (int t = 0; t < DT_COUNT; t++) n += kernel_at(i)->by_type[t] != NULL;
    }
    return n;
}

static void print_counts(Shard *shards, int count) {
    Progress sum = {0};
    for (int i = 0; i < count; i++) {
        Progress *p = shards[i].progress;
        sum.ops += p->ops;
        sum.calls += p->calls;
        sum.ok += p->ok;
        sum.failed_graphs += p->failed_graphs;
        for (int c = 0; c < CODES; c++) sum.codes[c] += p->codes[c];
        char *clean = xasprintf("rm -rf %s %s", shards[i].dir, shards[i].log);
        if (system(clean) != 0) printf("could not remove %s\n", shards[i].dir);
        free(clean);
    }
    printf("malformed calls: %ld of %ld ops (%d kernels by type): %ld OK, %ld refused with their graph\n", sum.calls, sum.ops, op_types(), sum.ok, sum.failed_graphs);
    for (int c = 1; c < CODES; c++)
        if (sum.codes[c]) printf("   %8ld %s\n", sum.codes[c], error_code_name((ErrorCode)c));
}

static void load_calls(void) {
    static const char path[] = "tests/ops/calls.bin";
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    recorded = (Str){mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0), (size_t)st.st_size};
    close(fd);
}

/* ---- Is there a call of every op? ---- */

static bool has_reason(Str op) {
    bool found = false;
    for (size_t i = 0; i < sizeof unrecorded / sizeof *unrecorded; i++) found |= str_is(op, unrecorded[i].op);
    return found;
}

/* Every op with a kernel has a recorded call or a reason why it has none; not both. */
static int check_recorded(void) {
    bool *have = xcalloc((size_t)op_count(), sizeof *have);
    int failures = 0, with = 0;
    WireReader r = wire_reader(recorded);
    while (wire_next(&r)) {
        Call c;
        if (call_read(r.bytes, &c))
            for (int i = 0; i < op_count(); i++) have[i] |= c.op == op_at(i);
        call_clear(&c);
    }
    for (int i = 0; i < op_count(); i++) {
        Str name = op_at(i)->name;
        if (!kernel_exists(name)) continue;
        with += have[i];
        if (have[i] != has_reason(name)) continue;
        printf("FAIL %.*s: %s\n", STR_ARG(name), have[i] ? "has a recorded call, and a reason why it has none" : "no recorded call, and no reason in malformed_unrecorded.h");
        failures++;
    }
    printf("recorded calls: of %d ops\n", with);
    fflush(stdout); /* children must not print it again */
    free(have);
    return failures;
}

int main(int argc, char **argv) {
    Options o = {.names = xcalloc((size_t)argc, sizeof(char *))};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0) o.all = true;
        else if (strcmp(argv[i], "--leaks") == 0) o.leaks = true;
        else if (strcmp(argv[i], "--one") == 0) o.one = true;
        else o.names[o.name_count++] = argv[i];
    }
    ops_register_all();
    load_calls();
    if (o.one) {
        static Progress progress;
        child(&o, &progress, 0, 1, 0, 0);
        free(o.names);
        return 0;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int count = o.name_count == 1 || cores < 2 ? 1 : cores > 8 ? 8 : (int)cores;
    Shard *shards = xcalloc((size_t)count, sizeof *shards);
    int failures = o.name_count ? 0 : check_recorded();
    failures += run_shards(&o, shards, count);
    long ops = 0;
    for (int i = 0; i < count; i++) ops += shards[i].progress->ops;
    print_counts(shards, count);
    printf("%ld passed, %d failed\n", ops, failures);
    free(shards);
    free(o.names);
    return failures || !ops;
}
