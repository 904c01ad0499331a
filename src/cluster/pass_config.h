/* pass_config.h: what a client's configuration says of the passes over its graphs. */
#pragma once
#include "passes/pass.h"
#include "proto/config.pb-c.h"

/* graph_options may be NULL. OptimizerOptions.opt_level L0 switches everything off but arithmetic and what its other fields ask for;
 * RewriterConfig.disable_meta_optimizer everything; a toggle that is OFF its own pass. */
PassOptions pass_options_read(const Pb__GraphOptions *graph_options);
