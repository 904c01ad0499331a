/* constant_shapes.c: rules of what graphs start from: constants, placeholders, arguments. */
#include <stdlib.h>

#include "base/memory.h"
#include "proto/wire.h"
#include "shapes/rule_list.h"
#include "shapes/shape_info_internal.h"

/* The shape of a TensorProto, without its values. */
static void tensor_attr(ShapeContext *c) {
    Str value, proto;
    PartialShape s = SHAPE_UNKNOWN;
    if (!node_attr(c->node, "value", &value) || !attr_tensor(value, &proto)) {
        ctx_fail(c, "NodeDef missing attr 'value'");
        return;
    }
    WireReader r = wire_reader(proto);
    s.rank = 0;
    while (wire_next(&r)) {
        if (r.field != 2 || r.type != WIRE_BYTES || c->err) continue;
        c->err = shape_decode(r.bytes, &s);
    }
    ctx_out(c, 0, s);
}

static void placeholder(ShapeContext *c) {
    PartialShape s = ctx_attr_shape(c, "shape");
    /* Before version 24 of GraphDef a shape without dimensions meant none. */
    if (s.rank == 0 && c->info->graph->producer && c->info->graph->producer < 24) s.rank = -1;
    ctx_out(c, 0, s);
}

static void placeholder_with_default(ShapeContext *c) {
    PartialShape s = ctx_attr_shape(c, "shape");
    ctx_merge(c, c->in[0], s);
    ctx_out(c, 0, s);
}

static void argument(ShapeContext *c) {
    int64_t index = ctx_attr_int(c, "index");
    const ShapeContext *caller = c->info->caller;
    if (!caller || index < 0 || index >= caller->in_count) return;
    c->out[0] = caller->in[index];
    c->out_handles[0] = caller->in_handles[index];
}

const ShapeRow constant_rules[] = {
    {"Const", tensor_attr, 0},
    {"DeviceIndex", rule_scalar, 0},
    {"FakeParam", 0, "-> @shape"},
    {"HostConst", rule_unknown, 0},
    {"ImmutableConst", 0, "-> @shape"},
    {"Placeholder", placeholder, 0},
    {"PlaceholderV2", 0, "-> @shape"},
    {"PlaceholderWithDefault", placeholder_with_default, 0},
    {"_Arg", argument, 0},
    {"_EagerConst", rule_same, 0},
    {0},
};
