/* cmd_graph.c: rill graph: runs and shows SavedModels, MetaGraphs and GraphDefs. */
#include "tools/command.h"

const Subcommand graph_rows[] = {
    {"run", graph_run, "restores a model and runs a signature, or named tensors"},
    {"show", graph_show, "signatures, inputs, outputs, variables, size"},
    {"ops", graph_ops, "which ops it has, how often, and which of them Rill lacks"},
    {"dot", graph_dot, "the nodes and edges for Graphviz"},
    {0},
};

int cmd_graph(int argc, char **argv) {
    return subcommand_run(graph_rows, "graph", "looks into graphs and runs them", argc, argv);
}
