/* spec_test.c: cluster descriptions of every kind; small parts of the cluster layer: request ids, step table, codec. */
#include "cluster/spec.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cluster/codec.h"
#include "net/grpc_frame.h"
#include "cluster/request_ids.h"
#include "cluster/step_table.h"
#include "proto/config.pb-c.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"
#include "unit_test.h"

/* ---- ClusterSpec ---- */

static void expect_task(const ClusterSpec *s, const char *job, int index, const char *address) {
    const ClusterTask *t = cluster_spec_find(s, str_of(job), index);
    assert_non_null(t);
    assert_string_equal(t->address, address);
    assert_ptr_equal(cluster_spec_find_name(s, str_of(t->name)), t);
}

static void flags_list_hosts(void **state) {
    (void)state;
    ClusterSpec s = {0};
    expect_ok(cluster_spec_add_hosts(&s, STR("ps"), STR("a:1, b:2")));
    expect_ok(cluster_spec_add_hosts(&s, STR("worker"), STR("[::1]:3")));
    assert_int_equal(s.count, 3);
    expect_task(&s, "ps", 1, "b:2");
    expect_task(&s, "worker", 0, "[::1]:3");
    assert_string_equal(s.tasks[1].name, "/job:ps/replica:0/task:1");
    assert_null(cluster_spec_find(&s, STR("ps"), 2));
    expect_error(cluster_spec_add_hosts(&s, STR("ps"), STR("c:3")), CODE_INVALID_ARGUMENT, "Task ps:0 is given twice");
    expect_error(cluster_spec_add_hosts(&s, STR("x"), STR("c:3,,d:4")), CODE_INVALID_ARGUMENT, "Address '' of task x:1");
    cluster_spec_clear(&s);
}

static void json_lists_jobs_or_is_tf_config(void **state) {
    (void)state;
    ClusterSpec s = {0};
    char *job = NULL;
    int index = -1;
    expect_ok(cluster_spec_from_json(STR("{\"ps\": [\"a:1\"], \"worker\": {\"0\": \"b:2\", \"7\": \"c:3\"}}"), &s, &job, &index));
    expect_task(&s, "worker", 7, "c:3");
    assert_null(job);
    cluster_spec_clear(&s);
    expect_ok(cluster_spec_from_json(STR("{\"cluster\": {\"chief\": [\"a:1\"], \"ps\": [\"b:2\"]}, \"task\": {\"type\": \"ps\", \"index\": 0}}"), &s, &job, &index));
    expect_task(&s, "chief", 0, "a:1");
    assert_string_equal(job, "ps");
    assert_int_equal(index, 0);
    free(job);
    cluster_spec_clear(&s);
    expect_ok(cluster_spec_from_json(STR("{\"cluster\": {\"ps\": [\"b:2\"]}, \"task\": {\"type\": \"ps\", \"index\": \"0\"}}"), &s, NULL, NULL));
    cluster_spec_clear(&s);
}

static void descriptions_that_make_no_sense_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"", "not a JSON object"}, {"[1]", "not a JSON object"}, {"{\"ps\":", "not a JSON object"}, {"{}", "names no task"},
        {"{\"ps\": 3}", "must be a list"}, {"{\"ps\": [3]}", "task 0 is not an address"}, {"{\"ps\": [\"nohost\"]}", "'nohost' of task ps:0 is not host:port"},
        {"{\"ps\": [\"a:99999\"]}", "is not host:port"}, {"{\"ps\": [\":1\"]}", "is not host:port"}, {"{\"ps\": {\"x\": \"a:1\"}}", "'x' is not a task index"},
        {"{\"ps\": {\"-1\": \"a:1\"}}", "negative"}, {"{\"p s\": [\"a:1\"]}", "Job name 'p s'"}, {"{\"ps\": {\"0\": \"a:1\", \"00\": \"b:1\"}}", "given twice"},
        {"{\"cluster\": {\"ps\": [\"a:1\"]}, \"task\": {\"index\": 1}}", "needs a \"type\""}, {"{\"cluster\": {}, \"task\": {\"type\": \"ps\", \"index\": 0}}", "names no task"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ClusterSpec s = {0};
        char *job = NULL;
        int index = 0;
        expect_error(cluster_spec_from_json(str_of(rows[i].json), &s, &job, &index), CODE_INVALID_ARGUMENT, rows[i].error);
        assert_int_equal(s.count, 0);
        assert_null(job);
    }
}

static void a_cluster_survives_its_protobuf(void **state) {
    (void)state;
    ClusterSpec s = {0}, back = {0};
    expect_ok(cluster_spec_add(&s, STR("worker"), 3, STR("w:3")));
    expect_ok(cluster_spec_add(&s, STR("ps"), 0, STR("p:0")));
    expect_ok(cluster_spec_add(&s, STR("worker"), 1, STR("w:1")));
    Pb__ClusterDef *def = cluster_spec_to_def(&s);
    assert_int_equal(def->n_job, 2);
    expect_ok(cluster_spec_from_def(def, &back));
    assert_int_equal(back.count, 3);
    expect_task(&back, "worker", 3, "w:3");
    expect_task(&back, "ps", 0, "p:0");
    cluster_spec_clear(&back);
    free(def->job[0]->tasks[0]->value);
    def->job[0]->tasks[0]->value = strdup("bad");
    expect_error(cluster_spec_from_def(def, &back), CODE_INVALID_ARGUMENT, "'bad' of task worker:3");
    pb__cluster_def__free_unpacked(def, NULL);
    cluster_spec_clear(&s);
}

/* ---- Request ids ---- */

static void an_id_is_fresh_once_while_it_is_remembered(void **state) {
    (void)state;
    RequestIds *r = request_ids_new(3);
    assert_true(request_ids_add(r, 0) && request_ids_add(r, 0));
    for (int64_t id = 1; id <= 3; id++) assert_true(request_ids_add(r, id));
    for (int64_t id = 1; id <= 3; id++) assert_false(request_ids_add(r, id));
    assert_true(request_ids_add(r, -4)); /* pushes out 1 */
    assert_true(request_ids_add(r, 1));
    assert_false(request_ids_add(r, 3));
    for (int64_t id = 10; id < 10000; id++) assert_true(request_ids_add(r, id));
    request_ids_free(r);
    request_ids_free(NULL);
}

/* ---- Step table ---- */

static int dones;
static void note(void *arg, Error *err, Tensor *value, bool is_dead) {
    (void)is_dead;
    *(Error **)arg = err;
    tensor_unref(value);
    dones++;
}

static void count_aborted(void *arg, Error *err, Tensor *value, bool is_dead) {
    (void)value, (void)is_dead;
    assert_int_equal(err->code, CODE_ABORTED);
    error_free(err);
    ++*(int *)arg;
}

/* A peer that goes gives up its RecvTensors one by one: the first one may not take the step from the others. */
static void a_step_that_others_wait_for_is_kept(void **state) {
    (void)state;
    StepTable *t = step_table_new(NULL, NULL);
    int first = 0, second = 0;
    StepEntry *e = step_table_get(t, 7);
    rendezvous_recv(step_entry_rendezvous(e), STR("a"), count_aborted, &first);
    rendezvous_recv(step_entry_rendezvous(e), STR("b"), count_aborted, &second);
    assert_true(rendezvous_withdraw(step_entry_rendezvous(e), STR("a"), &first));
    step_table_drop_if_idle(t, e);
    step_entry_unref(e);
    assert_int_equal(step_table_count(t), 1);
    step_table_free(t);
    assert_int_equal(first, 0);
    assert_int_equal(second, 1);
}

static void steps_are_kept_until_they_are_cleaned_up(void **state) {
    (void)state;
    StepTable *t = step_table_new(NULL, NULL);
    StepEntry *a = step_table_get(t, 5), *b = step_table_get(t, 5), *zero = step_table_get(t, 0);
    assert_ptr_equal(a, b);
    assert_int_equal(step_table_count(t), 2);
    Error *err = NULL;
    rendezvous_recv(step_entry_rendezvous(a), STR("key"), note, &err);
    step_table_cleanup(t, 5);
    step_table_cleanup(t, 99);
    assert_int_equal(dones, 1);
    assert_true(err->derived);
    expect_error(err, CODE_ABORTED, "Cleanup 5");
    assert_int_equal(step_table_count(t), 1);
    StepEntry *again = step_table_get(t, 5);
    assert_ptr_not_equal(again, a);
    step_entry_unref(a);
    step_entry_unref(b);
    step_table_drop_if_idle(t, again); /* nobody else holds it */
    assert_int_equal(step_table_count(t), 1);
    step_entry_unref(again);
    StepEntry *held = step_table_get(t, 0);
    step_table_drop_if_idle(t, held); /* `zero` holds it too */
    assert_int_equal(step_table_count(t), 1);
    step_entry_unref(held);
    step_entry_unref(zero);
    step_table_free(t);
}

static void keep(void *arg, Error *err, Tensor *value, bool is_dead) {
    assert_null(err);
    assert_true(is_dead && !value);
    ++*(int *)arg;
}

static void a_step_that_ended_well_is_forgotten_with_its_last_tensor(void **state) {
    (void)state;
    int came = 0;
    StepTable *t = step_table_new(NULL, NULL);
    StepEntry *e = step_table_get(t, 7);
    Rendezvous *r = step_entry_rendezvous(e);
    assert_null(rendezvous_send(r, STR("a"), NULL, true));
    assert_null(rendezvous_send(r, STR("b"), NULL, true));
    step_table_drop_if_idle(t, e);
    assert_int_equal(step_table_count(t), 1); /* it runs */
    step_table_end(t, e);
    assert_true(step_entry_is_ended(e));
    assert_int_equal(step_table_count(t), 1); /* two tensors are to be fetched */
    rendezvous_recv(r, STR("b"), keep, &came);
    step_table_drop_if_idle(t, e);
    assert_int_equal(step_table_count(t), 1);
    rendezvous_recv(r, STR("a"), keep, &came);
    step_table_drop_if_idle(t, e);
    assert_int_equal(step_table_count(t), 0);
    step_table_cleanup(t, 7); /* of a master that does not know */
    StepEntry *again = step_table_get(t, 7); /* the same id once more: a new step */
    assert_ptr_not_equal(again, e);
    assert_false(step_entry_is_ended(again));
    step_table_end(t, e); /* the old one takes nothing with it */
    assert_int_equal(step_table_count(t), 1);
    step_table_end(t, again);
    assert_int_equal(step_table_count(t), 0);
    assert_int_equal(came, 2);
    step_entry_unref(e);
    step_entry_unref(again);
    step_table_free(t);
}

/* ---- Codec ---- */

static void a_received_tensor_is_the_one_sent(void **state) {
    (void)state;
    for (int64_t n = 0; n < 2000; n = n * 2 + 1) { /* small ones are copied, large ones travel as they lie in memory */
        Shape shape = shape_vector(n);
        Tensor *t = NULL, *back = NULL;
        expect_ok(tensor_new(DT_INT32, &shape, &t));
        for (int64_t i = 0; i < n; i++) tensor_i32(t)[i] = (int)i;
        Message m = {0};
        bool is_dead = true;
        codec_put_recv_tensor(&m, t, false, 123);
        assert_int_equal(m.count > 1, n * 4 > 512);
        expect_ok(codec_get_recv_tensor(&m, &back, &is_dead));
        assert_false(is_dead);
        assert_true(shape_eq(&back->shape, &shape));
        assert_memory_equal(back->data, t->data, tensor_bytes(t));
        tensor_unref(t);
        tensor_unref(back);
        message_clear(&m);
    }
    Message m = {0};
    Tensor *t = NULL;
    bool is_dead = false;
    codec_put_recv_tensor(&m, NULL, true, 1);
    expect_ok(codec_get_recv_tensor(&m, &t, &is_dead));
    assert_true(is_dead && !t);
    message_clear(&m);
    expect_error(codec_get_recv_tensor(&m, &t, &is_dead), CODE_INTERNAL, "has no tensor");
    message_add_copy(&m, STR("\x0a\x09"));
    expect_error(codec_get_recv_tensor(&m, &t, &is_dead), CODE_INTERNAL, "Malformed");
    message_clear(&m);
}

/* Reads a whole message as a connection does: the beginning from a buffer, the rest in place. */
static Message read_in_place(const Message *sent, size_t first) {
    GrpcReader r = {.align_at = codec_recv_tensor_align_at};
    char *bytes = xmalloc(sent->len), *to = NULL;
    message_copy_out(sent, bytes, 0, sent->len);
    expect_ok(grpc_reader_feed(&r, (Str){bytes, first}));
    for (size_t at = first, n; at < sent->len; at += n) {
        n = grpc_reader_room(&r, &to);
        assert_true(n > 0);
        if (n > sent->len - at) n = sent->len - at;
        memcpy(to, bytes + at, n);
        expect_ok(grpc_reader_feed(&r, (Str){to, n}));
    }
    assert_true(grpc_reader_is_complete(&r));
    Message got = {0};
    assert_null(grpc_reader_take(&r, NULL, &got));
    grpc_reader_clear(&r);
    free(bytes);
    return got;
}

static void a_large_tensor_is_made_of_the_message_it_came_in(void **state) {
    (void)state;
    const int64_t sizes[] = {100, 5000, 100000, 1000000}; /* of 4 bytes; the last is longer than what a prefix reserves */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        Shape shape = shape_vector(sizes[i]);
        Tensor *t = NULL, *back = NULL;
        bool is_dead = true;
        expect_ok(tensor_new(DT_INT32, &shape, &t));
        for (int64_t j = 0; j < sizes[i]; j++) tensor_i32(t)[j] = (int)(j * 7);
        Message m = {0};
        codec_put_recv_tensor(&m, t, false, 123);
        Message framed = grpc_frame_message(&m), got = read_in_place(&framed, 105);
        const char *memory = got.slices[0].data;
        size_t len = got.len;
        expect_ok(codec_get_recv_tensor(&got, &back, &is_dead));
        bool in_place = (const char *)back->data > memory && (const char *)back->data < memory + len;
        assert_int_equal(in_place, sizes[i] > 4096);
        assert_int_equal((uintptr_t)back->data % 64, 0);
        message_clear(&got); /* the tensor keeps the memory */
        message_clear(&framed);
        assert_memory_equal(back->data, t->data, tensor_bytes(t));
        tensor_unref(back);
        tensor_unref(t);
    }
    assert_int_equal(codec_recv_tensor_align_at(STR("")), 0);
    assert_int_equal(codec_recv_tensor_align_at(STR("\x0a\xff")), 0);
    assert_int_equal(codec_recv_tensor_align_at(STR("\x0a\xff\x01\x12\x7f")), 0);
    assert_int_equal(codec_recv_tensor_align_at(STR("\x18\x05\x0a\x20\x08\x01\x22\x10")), 8);
}

static void named_tensors_are_ordinary_protobuf(void **state) {
    (void)state;
    const int64_t sizes[] = {0, 1, 3000};
    for (int i = 0; i < 3; i++) {
        Shape shape = shape_vector(sizes[i]);
        Tensor *t = NULL, *back = NULL;
        expect_ok(tensor_new(DT_DOUBLE, &shape, &t));
        memset(t->data, 7, tensor_bytes(t));
        Message m = {0};
        codec_add_named_tensor(&m, 1, STR("name"), t);
        codec_add_bytes(&m, 9, STR("more"));
        WireReader r = wire_reader(message_flatten(&m));
        assert_true(wire_next(&r) && r.field == 1);
        WireReader named = wire_reader(r.bytes);
        assert_true(wire_next(&named) && named.field == 1 && str_is(named.bytes, "name"));
        assert_true(wire_next(&named) && named.field == 2);
        expect_ok(tensor_proto_decode(named.bytes, &back));
        assert_memory_equal(back->data, t->data, tensor_bytes(t));
        assert_false(wire_next(&named) || named.failed);
        assert_true(wire_next(&r) && r.field == 9 && str_is(r.bytes, "more"));
        assert_false(wire_next(&r) || r.failed);
        message_clear(&m);
        tensor_unref(t);
        tensor_unref(back);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_list_hosts), cmocka_unit_test(json_lists_jobs_or_is_tf_config), cmocka_unit_test(descriptions_that_make_no_sense_are_refused),
        cmocka_unit_test(a_cluster_survives_its_protobuf), cmocka_unit_test(an_id_is_fresh_once_while_it_is_remembered),
        cmocka_unit_test(steps_are_kept_until_they_are_cleaned_up),
        cmocka_unit_test(a_step_that_ended_well_is_forgotten_with_its_last_tensor),
        cmocka_unit_test(a_step_that_others_wait_for_is_kept), cmocka_unit_test(a_received_tensor_is_the_one_sent),
        cmocka_unit_test(a_large_tensor_is_made_of_the_message_it_came_in),
        cmocka_unit_test(named_tensors_are_ordinary_protobuf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
