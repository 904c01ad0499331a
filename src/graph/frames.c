/* frames.c: a walk along the edges, in and out of loops. */
#include "graph/frames.h"

#include <stdlib.h>

#include "base/memory.h"

bool node_is_enter(const Node *n) {
    return node_is(n, "Enter") || node_is(n, "RefEnter");
}

bool node_is_exit(const Node *n) {
    return node_is(n, "Exit") || node_is(n, "RefExit");
}

bool node_is_next_iteration(const Node *n) {
    return node_is(n, "NextIteration") || node_is(n, "RefNextIteration");
}

static int add_frame(FrameMap *m, Str name, int parent, size_t *capacity) {
    for (int i = 1; i < m->frame_count; i++)
        if (m->frames[i].parent == parent && str_eq(m->frames[i].name, name)) return i;
    m->frames = vec_reserve(m->frames, capacity, (size_t)m->frame_count + 1, sizeof *m->frames);
    m->frames[m->frame_count] = (Frame){.name = name, .parent = parent, .parallel_iterations = 10};
    return m->frame_count++;
}

static Error *enter(FrameMap *m, const Node *n, size_t *capacity) {
    Str name;
    int64_t parallel;
    Error *err = node_attr_string(n, "frame_name", &name);
    if (!err) err = node_attr_int(n, "parallel_iterations", &parallel);
    if (err) return err;
    int frame = add_frame(m, name, m->node_frame[n->id], capacity);
    m->frames[frame].parallel_iterations = parallel < 1 ? 1 : parallel > 1 << 20 ? 1 << 20 : (int)parallel;
    m->frames[frame].enter_count++;
    m->enter_frame[n->id] = frame;
    return NULL;
}

int frame_of_output(const FrameMap *m, const Node *n) {
    if (m->enter_frame[n->id] >= 0) return m->enter_frame[n->id];
    int frame = m->node_frame[n->id];
    return node_is_exit(n) ? m->frames[frame].parent : frame;
}

/* Consumers of every node, flat: those of node i are targets[offsets[i] .. offsets[i+1]). */
static void consumers(const Graph *g, int **offsets, int **targets) {
    *offsets = xcalloc((size_t)g->node_count + 1, sizeof(int));
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count; j++) (*offsets)[n->inputs[j].node->id + 1]++;
        for (int j = 0; j < n->control_count; j++) (*offsets)[n->controls[j]->id + 1]++;
    }
    for (int i = 0; i < g->node_count; i++) (*offsets)[i + 1] += (*offsets)[i];
    *targets = xcalloc((size_t)(*offsets)[g->node_count], sizeof(int));
    int *fill = xcalloc((size_t)g->node_count, sizeof(int));
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count + n->control_count; j++) {
            int src = j < n->input_count ? n->inputs[j].node->id : n->controls[j - n->input_count]->id;
            (*targets)[(*offsets)[src] + fill[src]++] = i;
        }
    }
    free(fill);
}

/* `late` and an input that came before it disagree about the frame of their consumer. */
static Error *different_frames(const FrameMap *m, const Node *late, const Node *n) {
    int frame = m->node_frame[n->id];
    const Node *first = n;
    for (int i = 0; i < n->input_count; i++) {
        const Node *src = n->inputs[i].node;
        if (src == late || m->node_frame[src->id] < 0 || frame_of_output(m, src) != frame) continue;
        first = src;
        break;
    }
    return error_invalid("{{node %.*s}} has inputs from different frames. The input {{node %.*s}} is in frame '%.*s'. The input {{node %.*s}} is in frame '%.*s'.",
                         STR_ARG(n->name), STR_ARG(late->name), STR_ARG(m->frames[frame_of_output(m, late)].name), STR_ARG(first->name), STR_ARG(m->frames[frame].name));
}

static Error *walk(const Graph *g, FrameMap *m, const int *offsets, const int *targets, int *queue) {
    size_t capacity = 0;
    int head = 0, tail = 0;
    add_frame(m, STR(""), -1, &capacity);
    for (int i = 0; i < g->node_count; i++) {
        if (g->nodes[i]->input_count + g->nodes[i]->control_count > 0) continue;
        m->node_frame[i] = 0;
        queue[tail++] = i;
    }
    while (head < tail) {
        const Node *n = g->nodes[queue[head++]];
        Error *err = node_is_enter(n) ? enter(m, n, &capacity) : NULL;
        if (err) return err;
        if (node_is_exit(n) && m->node_frame[n->id] == 0) return error_invalid("Invalid Exit op: Cannot find a corresponding Enter op.\n\t (node %.*s)", STR_ARG(n->name));
        if (node_is_next_iteration(n) && m->node_frame[n->id] == 0) return error_invalid("Node {{node %.*s}} goes round a loop it is not in", STR_ARG(n->name));
        if (node_is(n, "LoopCond")) m->frames[m->node_frame[n->id]].loop_cond = (Node *)n;
        int frame = frame_of_output(m, n);
        for (int j = offsets[n->id]; j < offsets[n->id + 1]; j++) {
            int dst = targets[j];
            if (m->node_frame[dst] < 0) {
                m->node_frame[dst] = frame;
                queue[tail++] = dst;
            } else if (m->node_frame[dst] != frame) {
                return different_frames(m, n, g->nodes[dst]);
            }
        }
    }
    if (tail < g->node_count) return error_invalid("Graph is invalid: %d nodes cannot be reached, they are in a cycle or behind one", g->node_count - tail);
    return NULL;
}

Error *frame_map_build(const Graph *g, FrameMap *out) {
    *out = (FrameMap){0};
    out->node_frame = xcalloc((size_t)g->node_count, sizeof(int));
    out->enter_frame = xcalloc((size_t)g->node_count, sizeof(int));
    for (int i = 0; i < g->node_count; i++) out->node_frame[i] = out->enter_frame[i] = -1;
    int *offsets, *targets;
    int *queue = xcalloc((size_t)g->node_count, sizeof *queue);
    consumers(g, &offsets, &targets);
    Error *err = walk(g, out, offsets, targets, queue);
    free(offsets);
    free(targets);
    free(queue);
    if (err) frame_map_clear(out);
    return err;
}

void frame_map_clear(FrameMap *m) {
    free(m->frames);
    free(m->node_frame);
    free(m->enter_frame);
    *m = (FrameMap){0};
}
