/* lending.c: process_vm_readv in place of a socket's two copies and its buffers.

   Each side of a local connection tells the other, in a PING, where a sample of known bytes lies in its memory. Who can read the sample says so in
   another PING, and large messages then come to it as a list of places. All is found out by trying: where the system forbids it (other containers,
   ptrace_scope) the messages go through the socket.

   A request is kept with its stream, which ends with the answer. An answer is kept until the receiver says that it has it, in a third kind of PING;
   only then does the stream end. Whoever gives up resets the stream, and then the memory may serve others while the peer still copies: so the loan
   has a number, which is taken away first, and which the receiver reads last. */
#include "net/lending.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "net/conn.h"

enum {
    LEND_BYTES = 128 << 10,  /* less goes through the socket as fast */
    PIECE_BYTES = 2 << 20,   /* copied at once */
    HELPED_BYTES = 8 << 20,  /* from here on two threads copy */
    MAX_PARTS = 1 << 20,
    HEAD_BYTES = 1024,       /* looked at for the alignment */
};

/* ---- PINGs: 'r', what, six bytes of number ---- */

enum { PING_SAMPLE_AT = 'm', PING_CAN_READ = 'o', PING_RETURNED = 'd' };

static const char sample[16] = "rill lends 1";

struct Lending {
    RefCount refs;
    Loop *loop;
    pid_t peer;
    Conn *conn;      /* with the turn; NULL: closed */
    bool peer_reads; /* with the turn */
};

static void send_ping(Lending *l, uint8_t what, uint64_t number) {
    uint8_t payload[HTTP2_PING_SIZE] = {'r', what};
    memcpy(payload + 2, &number, 6); /* both sides are of one machine */
    http2_ping(conn_http2(l->conn), payload);
    conn_flush_soon(l->conn);
}

static void on_ping(void *arg, const uint8_t payload[HTTP2_PING_SIZE]) {
    Lending *l = arg;
    uint64_t number = 0;
    char found[sizeof sample];
    if (payload[0] != 'r') return;
    memcpy(&number, payload + 2, 6);
    if (payload[1] == PING_SAMPLE_AT) {
        struct iovec to = {found, sizeof found}, from = {(void *)(uintptr_t)number, sizeof found};
        if (process_vm_readv(l->peer, &to, 1, &from, 1, 0) != sizeof found || memcmp(found, sample, sizeof sample) != 0) return;
        send_ping(l, PING_CAN_READ, 0);
    } else if (payload[1] == PING_CAN_READ) {
        l->peer_reads = true;
    } else if (payload[1] == PING_RETURNED) {
        http2_let_end(conn_http2(l->conn), (int32_t)number);
    }
}

Lending *lending_new(Conn *conn, Loop *loop, int fd) {
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.pid <= 0) return NULL;
    Lending *l = xcalloc(1, sizeof *l);
    refcount_init(&l->refs);
    l->loop = loop;
    l->conn = conn;
    l->peer = peer.pid;
    http2_on_ping(conn_http2(conn), on_ping, l);
    send_ping(l, PING_SAMPLE_AT, (uintptr_t)sample);
    return l;
}

Lending *lending_ref(Lending *l) {
    if (l) refcount_inc(&l->refs);
    return l;
}

void lending_unref(Lending *l) {
    if (l && refcount_dec(&l->refs)) free(l);
}

pid_t lending_peer(const Lending *l) {
    return l->peer;
}

void lending_end(Lending *l) {
    if (l) l->conn = NULL;
    lending_unref(l);
}

/* ---- Loans ---- */

struct Loan {
    _Atomic uint64_t number; /* 0: over */
    Message message;
};

/* What is sent: this, then for each part a Place, and after one without an address its bytes. */
typedef struct LoanHead {
    uint64_t number, number_at;
    uint64_t part_count, len;
} LoanHead;

typedef struct Place {
    uint64_t at, len;
} Place;

bool lending_fits(const Lending *l, const Message *m) {
    if (!l || !l->peer_reads || m->len < LEND_BYTES || m->count > MAX_PARTS) return false;
    for (size_t i = 0; i < m->count; i++)
        if (m->slices[i].len >= LEND_BYTES) return true;
    return false;
}

/* No two loans of a process have the same. */
static uint64_t next_number(void) {
    static _Atomic uint64_t last = (uint64_t)'r' << 56;
    return atomic_fetch_add(&last, 1) + 1;
}

Loan *loan_new(Message *m, Message *out) {
    Loan *loan = xcalloc(1, sizeof *loan);
    StrBuf b = {0};
    atomic_store(&loan->number, next_number());
    loan->message = message_move(m);
    LoanHead head = {atomic_load(&loan->number), (uintptr_t)&loan->number, loan->message.count, loan->message.len};
    strbuf_add(&b, (Str){(const char *)&head, sizeof head});
    for (size_t i = 0; i < loan->message.count; i++) {
        const Slice *s = &loan->message.slices[i];
        bool is_lent = s->len >= LEND_BYTES;
        Place place = {is_lent ? (uintptr_t)s->data : 0, s->len};
        strbuf_add(&b, (Str){(const char *)&place, sizeof place});
        if (!is_lent) strbuf_add(&b, (Str){s->data, s->len});
    }
    size_t len = b.len;
    message_add_take(out, strbuf_detach(&b), len);
    return loan;
}

void loan_free(void *arg) {
    Loan *loan = arg;
    if (!loan) return;
    atomic_store(&loan->number, 0);
    message_clear(&loan->message);
    free(loan);
}

/* ---- Copying ---- */

typedef struct Piece {
    char *to;
    const char *from; /* in the peer */
    size_t len;
} Piece;

typedef struct PieceList {
    Piece *items;
    size_t count, capacity;
} PieceList;

static int copy_piece(pid_t peer, Piece p) {
    while (p.len > 0) {
        struct iovec to = {p.to, p.len}, from = {(void *)p.from, p.len};
        ssize_t n = process_vm_readv(peer, &to, 1, &from, 1, 0);
        if (n <= 0) return n < 0 ? errno : EFAULT;
        p.to += n;
        p.from += n;
        p.len -= (size_t)n;
    }
    return 0;
}

typedef struct Copying {
    pid_t peer;
    const Piece *pieces;
    _Atomic int failed; /* an errno */
} Copying;

static void copy_range(void *arg, int64_t begin, int64_t end) {
    Copying *c = arg;
    for (int64_t i = begin; i < end && !atomic_load(&c->failed); i++) {
        int failed = copy_piece(c->peer, c->pieces[i]);
        if (failed) atomic_store(&c->failed, failed);
    }
}

/* 0 or an errno. */
static int copy_all(pid_t peer, const PieceList *list, ThreadPool *helpers) {
    Copying c = {.peer = peer, .pieces = list->items};
    threadpool_parallel_for(helpers, (int64_t)list->count, 1, copy_range, &c);
    return atomic_load(&c.failed);
}

/* ---- Fetching ---- */

static void add_pieces(PieceList *list, char *to, uint64_t from, size_t len) {
    while (len > 0) {
        size_t n = len < PIECE_BYTES ? len : PIECE_BYTES;
        list->items = vec_reserve(list->items, &list->capacity, list->count + 1, sizeof *list->items);
        list->items[list->count++] = (Piece){to, (const char *)(uintptr_t)from, n};
        to += n;
        from += n;
        len -= n;
    }
}

static bool take(Str *bytes, void *to, size_t len) {
    if (bytes->len < len) return false;
    memcpy(to, bytes->ptr, len);
    *bytes = str_slice(*bytes, len, bytes->len);
    return true;
}

/* The bytes that came with the list are put where they belong, the others listed. False: malformed. */
static bool lay_out(const LoanHead *head, Str rest, char *to, PieceList *list) {
    uint64_t left = head->len;
    for (uint64_t i = 0; i < head->part_count; i++) {
        Place place;
        if (!take(&rest, &place, sizeof place) || place.len > left) return false;
        if (place.at)
            add_pieces(list, to, place.at, place.len);
        else if (!take(&rest, to, place.len))
            return false;
        to += place.len;
        left -= place.len;
    }
    return left == 0 && rest.len == 0;
}

/* Of the message's beginning, what came with the list. */
static size_t wanted_alignment(Str rest, AlignAt *align_at) {
    char head[HEAD_BYTES];
    size_t len = 0;
    Place place;
    if (!align_at) return 0;
    while (take(&rest, &place, sizeof place) && !place.at && place.len <= rest.len && place.len <= sizeof head - len) {
        memcpy(head + len, rest.ptr, place.len);
        len += place.len;
        rest = str_slice(rest, place.len, rest.len);
    }
    return align_at((Str){head, len});
}

/* After all copies: each was a call of the system that took and gave back locks, so this one reads later. */
static Error *check_number(pid_t peer, const LoanHead *head) {
    uint64_t number = 0;
    int failed = copy_piece(peer, (Piece){(char *)&number, (const char *)(uintptr_t)head->number_at, sizeof number});
    if (!failed && number == head->number) return NULL;
    return error_new(CODE_UNAVAILABLE, "the sender took a message of %llu bytes back", (unsigned long long)head->len);
}

Error *loan_fetch(pid_t owner, Message *m, size_t limit, AlignAt *align_at, ThreadPool *helpers) {
    LoanHead head;
    ReceivedMemory memory = {0};
    PieceList list = {0};
    Str rest = message_flatten(m);
    int failed = 0;
    Error *err = NULL;

    if (!take(&rest, &head, sizeof head) || head.part_count > MAX_PARTS)
        err = error_internal("a malformed list of lent memory");
    else if (head.len > limit)
        err = error_new(CODE_RESOURCE_EXHAUSTED, "message of %llu bytes is larger than the limit of %zu bytes", (unsigned long long)head.len, limit);
    else if (!received_memory_alloc(head.len, wanted_alignment(rest, align_at), &memory))
        err = error_new(CODE_RESOURCE_EXHAUSTED, "no memory for a message of %llu bytes", (unsigned long long)head.len);
    if (err) goto out;
    if (!lay_out(&head, rest, memory.data, &list)) {
        err = error_internal("a malformed list of lent memory");
        goto out;
    }
    failed = copy_all(owner, &list, head.len >= HELPED_BYTES ? helpers : NULL);
    if (failed) err = error_new(CODE_UNAVAILABLE, "cannot read %llu bytes of process %d: %s", (unsigned long long)head.len, (int)owner, strerror(failed));
    if (!err) err = check_number(owner, &head);
    if (err) goto out;

    message_clear(m);
    message_add_slice(m, (Slice){memory.data, head.len, received_memory_free, memory.block});
    memory.block = NULL;
out:
    received_memory_free(memory.block);
    free(list.items);
    return err;
}

/* ---- Returning ---- */

typedef struct Return {
    LoopTask task;
    Lending *lending;
    int32_t stream_id;
} Return;

static void return_here(void *arg) {
    Return *r = arg;
    if (r->lending->conn) send_ping(r->lending, PING_RETURNED, (uint32_t)r->stream_id);
    lending_unref(r->lending);
    free(r);
}

void lending_return(Lending *l, int32_t stream_id) {
    Return *r = xcalloc(1, sizeof *r);
    r->task = (LoopTask){.fn = return_here, .arg = r};
    r->lending = lending_ref(l);
    r->stream_id = stream_id;
    if (loop_run(l->loop, &r->task)) return;
    lending_unref(l); /* the loop is gone, and the connection with it */
    free(r);
}
