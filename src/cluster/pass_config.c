/* pass_config.c: GraphOptions read: OptimizerOptions and RewriterConfig, the latter by field number. */
#include "cluster/pass_config.h"

#include "cluster/codec.h"
#include "proto/wire.h"

enum { LEVEL_1 = 0, TOGGLE_OFF = 2, DISABLE_META_OPTIMIZER = 19 };

/* Fields of RewriterConfig that are toggles, and the passes they switch. */
static const struct {
    uint32_t field;
    unsigned passes;
} toggles[] = {
    {3, PASS_FOLD},      /* constant_folding */
    {7, PASS_SIMPLIFY},  /* arithmetic_optimization */
    {8, PASS_BYPASS | PASS_IDLE | PASS_CONTROLS}, /* dependency_optimization */
    {14, PASS_FUSE},     /* remapping */
    {24, PASS_SHARE},    /* common_subgraph_elimination */
};

/* TensorFlow's arithmetic rewrites know no level, and graphs of its vectorizer do not run without them. */
static unsigned disabled_by_optimizer(const Pb__OptimizerOptions *o) {
    if (!o || o->opt_level >= LEVEL_1) return 0;
    unsigned asked = (o->do_constant_folding ? PASS_FOLD : 0) | (o->do_common_subexpression_elimination ? PASS_SHARE : 0);
    return PASS_ALL & ~(asked | PASS_SIMPLIFY);
}

static unsigned disabled_by_rewriter(Str rewriter_config) {
    unsigned disabled = 0;
    WireReader r = wire_reader(rewriter_config);
    while (wire_next(&r)) {
        if (r.type != WIRE_VARINT) continue;
        if (r.field == DISABLE_META_OPTIMIZER && r.number) return PASS_ALL;
        for (size_t i = 0; i < sizeof toggles / sizeof toggles[0]; i++) {
            if (toggles[i].field != r.field) continue;
            disabled = r.number == TOGGLE_OFF ? disabled | toggles[i].passes : disabled & ~toggles[i].passes;
        }
    }
    return disabled;
}

PassOptions pass_options_read(const Pb__GraphOptions *g) {
    PassOptions options = {0};
    if (!g) return options;
    options.disabled = disabled_by_optimizer(g->optimizer_options) | disabled_by_rewriter(codec_str(g->rewrite_options));
    if (g->optimizer_options && g->optimizer_options->max_folded_constant_in_bytes > 0)
        options.max_constant_bytes = (size_t)g->optimizer_options->max_folded_constant_in_bytes;
    return options;
}
