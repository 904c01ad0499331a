"""The groups of rows, in the order in which they are run; each takes less than 90 s on a quiet machine."""
import rows_graphs
import rows_kernels
import rows_models
import rows_start
import rows_steps

GROUPS = {
    "steps": rows_steps.steps,
    "transfer": rows_steps.transfer,
    "python": rows_steps.python,
    **rows_models.GROUPS,
    **rows_kernels.GROUPS,
    **rows_graphs.GROUPS,
    **rows_start.GROUPS,
}
