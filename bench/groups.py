"""The groups of rows, in the order in which they are run; each takes less than 100 s on a quiet machine."""
import rows_graphs
import rows_kernels
import rows_models
import rows_ops
import rows_peers
import rows_start
import rows_steps

GROUPS = {
    "steps": rows_steps.steps,
    "transfer": rows_steps.transfer,
    **rows_peers.GROUPS,
    "transfer_tcp": rows_steps.transfer_tcp,
    "python": rows_steps.python,
    **rows_models.GROUPS,
    **rows_kernels.GROUPS,
    **rows_ops.GROUPS,
    **rows_graphs.GROUPS,
    **rows_start.GROUPS,
}
