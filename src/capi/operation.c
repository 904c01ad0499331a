/* operation.c: what an operation is and how it is joined to others. */
#include "capi/graph_internal.h"
#include "capi/status_internal.h"

const char *TF_OperationName(TF_Operation *op) {
    return op->name;
}

const char *TF_OperationOpType(TF_Operation *op) {
    return op->type;
}

const char *TF_OperationDevice(TF_Operation *op) {
    return op->device;
}

/* ---- Outputs ---- */

/* Of an op nobody registered the outputs are those that something uses. */
int TF_OperationNumOutputs(TF_Operation *op) {
    if (op->node->info) return op->node->output_count;
    int count = 0;
    for (int i = 0; i < op->consumer_count; i++)
        if (op->consumers[i].output >= count) count = op->consumers[i].output + 1;
    return count;
}

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
    const Node *n = oper_out.oper->node;
    bool known = n->info && oper_out.index >= 0 && oper_out.index < n->output_count;
    return (TF_DataType)(known ? n->output_types[oper_out.index] : DT_INVALID);
}

static int list_length(TF_Operation *op, bool is_input, const char *arg_name, TF_Status *status) {
    int from = 0, count = 0;
    Error *err = node_arg_range(op->node, is_input, str_of(arg_name), &from, &count);
    return status_take(status, err) ? count : -1;
}

int TF_OperationOutputListLength(TF_Operation *op, const char *arg_name, TF_Status *status) {
    return list_length(op, false, arg_name, status);
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) {
    return TF_OperationOutputConsumers(oper_out, NULL, 0);
}

int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input *consumers, int max_consumers) {
    const TF_Operation *op = oper_out.oper;
    int found = 0;
    for (int i = 0; i < op->consumer_count; i++) {
        if (op->consumers[i].output != oper_out.index) continue;
        if (found < max_consumers) consumers[found] = op->consumers[i].input;
        found++;
    }
    return found;
}

/* ---- Inputs ---- */

int TF_OperationNumInputs(TF_Operation *op) {
    return op->node->input_count;
}

TF_DataType TF_OperationInputType(TF_Input oper_in) {
    const Node *n = oper_in.oper->node;
    bool known = n->info && oper_in.index >= 0 && oper_in.index < n->expected_inputs;
    return (TF_DataType)(known ? n->input_types[oper_in.index] : DT_INVALID);
}

int TF_OperationInputListLength(TF_Operation *op, const char *arg_name, TF_Status *status) {
    return list_length(op, true, arg_name, status);
}

TF_Output TF_OperationInput(TF_Input oper_in) {
    const Node *n = oper_in.oper->node;
    if (oper_in.index < 0 || oper_in.index >= n->input_count) return (TF_Output){NULL, -1};
    return capi_output_of(oper_in.oper->graph, n->inputs[oper_in.index]);
}

void TF_OperationAllInputs(TF_Operation *op, TF_Output *inputs, int max_inputs) {
    for (int i = 0; i < op->node->input_count && i < max_inputs; i++) inputs[i] = capi_output_of(op->graph, op->node->inputs[i]);
}

/* ---- Control edges ---- */

int TF_OperationNumControlInputs(TF_Operation *op) {
    return op->node->control_count;
}

int TF_OperationGetControlInputs(TF_Operation *op, TF_Operation **control_inputs, int max_control_inputs) {
    int n = op->node->control_count;
    for (int i = 0; i < n && i < max_control_inputs; i++) control_inputs[i] = graph_operation(op->graph, op->node->controls[i]);
    return n;
}

int TF_OperationNumControlOutputs(TF_Operation *op) {
    return op->control_output_count;
}

int TF_OperationGetControlOutputs(TF_Operation *op, TF_Operation **control_outputs, int max_control_outputs) {
    for (int i = 0; i < op->control_output_count && i < max_control_outputs; i++) control_outputs[i] = op->control_outputs[i];
    return op->control_output_count;
}
