"""Rows of one kernel alone: Rill in one process beside TensorFlow and beside oneDNN called alone."""
import contest
import graphs
import stage


def contenders(name, case):
    path = graphs.kernel(stage.GRAPHS, name)
    words = [stage.bench_program("onednn"), *(["gemm", *graphs.GEMMS[name]] if name in graphs.GEMMS else ["conv", *graphs.CONVS[name], case])]
    found = {"rill": contest.generator(path, case), "tensorflow": contest.python("python_client.py", path, case, ""), "onednn": contest.Contender(words)}
    if name in graphs.CONVS:
        found["onednn_blocked"] = contest.Contender([*words, "blocked"])
    return found


def gemms(s):
    """Products of matrices alone, beside oneDNN called alone."""
    for name, (m, k, n) in graphs.GEMMS.items():
        s.contest(name, "kernels", "product %d×%d by %d×%d" % (m, k, k, n), contenders(name, "forward"), with_cpu=False)


def conv_rows(name):
    batch, size, inputs, outputs, window = graphs.CONVS[name]

    def rows(s):
        for case in "forward", "backward_data", "backward_weights":
            title = "convolution %d×%d of %d×%d×%d×%d to %d, %s" % (window, window, batch, size, size, inputs, outputs, case.replace("_", " by "))
            s.contest("%s_%s" % (name, case), "kernels", title, contenders(name, case), with_cpu=False)
    rows.__doc__ = "A convolution alone, forward and backward, beside oneDNN called alone"
    return rows


GROUPS = {"gemm": gemms, **{name: conv_rows(name) for name in graphs.CONVS}}
