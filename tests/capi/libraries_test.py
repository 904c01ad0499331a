"""Programs compiled against TensorFlow's headers and library run on it and, not compiled again, on librill."""
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

from cluster_process import Cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / os.environ.get("MODE", "release")
TENSORFLOW = pathlib.Path(sysconfig.get_path("purelib")) / "tensorflow"
LIBRARIES = {"tensorflow": TENSORFLOW, "rill": BUILD / "lib"}
PROGRAMS = sorted(p.stem for p in pathlib.Path(__file__).parent.glob("*_test.c"))
HEADERS = ["c_api.h", "tf_status.h", "tf_buffer.h", "tf_tensor.h", "tf_datatype.h", "tf_tstring.h", "tf_attrtype.h"]


def run(command, **more):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, **more)


@pytest.fixture(scope="session")
def compile_program():
    """compile_program(source) -> a program made with TensorFlow's headers and linked to TensorFlow's library."""
    folder = BUILD / "tests" / "capi" / "linked_to_tensorflow"
    folder.mkdir(parents=True, exist_ok=True)
    made = {}

    def compile_once(source):
        if source not in made:
            program = folder / source.stem
            done = run(["cc", "-std=gnu17", "-O1", "-g", f"-I{TENSORFLOW}/include", source, "-o", program, f"-L{TENSORFLOW}",
                        "-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", "-Wl,--allow-shlib-undefined", "-lcmocka", "-pthread"])
            assert done.returncode == 0, done.stdout
            made[source] = program
        return made[source]

    return compile_once


def environment(library):
    return dict(os.environ, LD_LIBRARY_PATH=str(LIBRARIES[library]), CAPI_LIBRARY=library, TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")


@pytest.mark.parametrize("library", list(LIBRARIES))
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_program_passes_on(program, library, compile_program):
    done = run([compile_program(ROOT / "tests" / "capi" / f"{program}.c")], env=environment(library), cwd=ROOT)
    assert done.returncode == 0 and "[  PASSED  ]" in done.stdout, done.stdout


@pytest.fixture(scope="session", params=["rill", "tf"])
def master(request):
    """The target of a worker that has a ps beside it: both Rill, or both TensorFlow."""
    with Cluster({"ps": [request.param], "worker": [request.param]}) as cluster:
        yield cluster.target("worker")


@pytest.mark.parametrize("library", list(LIBRARIES))
def test_sessions_at_other_processes_on(library, master, compile_program):
    done = run([compile_program(ROOT / "tests/capi/remote_test.c")], env=dict(environment(library), CAPI_TARGET=master))
    assert done.returncode == 0 and "[  PASSED  ]" in done.stdout, done.stdout


@pytest.mark.parametrize("library", list(LIBRARIES))
def test_graphs_that_grow_by_gradients_on(library, master, request, compile_program):
    kind = request.node.callspec.params["master"]
    done = run([compile_program(ROOT / "tests/capi/gradients_test.c")], env=dict(environment(library), CAPI_TARGET=master, CAPI_MASTER=kind))
    assert done.returncode == 0 and "[  PASSED  ]" in done.stdout, done.stdout


@pytest.mark.parametrize("library", list(LIBRARIES))
def test_models_that_tensorflow_has_just_saved_on(library, tmp_path_factory, compile_program):
    models = tmp_path_factory.mktemp("models")
    made = run([sys.executable, ROOT / "tests/capi/make_models.py", models])
    assert made.returncode == 0, made.stdout
    done = run([compile_program(ROOT / "tests/capi/saved_model_test.c")], env=dict(environment(library), CAPI_MODELS=str(models)))
    assert done.returncode == 0 and "[  PASSED  ]" in done.stdout, done.stdout


def test_the_example_runs_here_and_on_a_cluster(tmp_path, master):
    hello = tmp_path / "hello"
    done = run(["cc", f"-I{ROOT}/include", ROOT / "examples/c/hello.c", "-o", hello, f"-L{LIBRARIES['rill']}", "-l:librill.so.0"])
    assert done.returncode == 0, done.stdout
    for target in [[], [master]]:
        done = run([hello, *target], env=environment("rill"))
        assert done.returncode == 0 and "y = [71 101]" in done.stdout, done.stdout


def test_the_program_ran_on_the_library_it_was_given(compile_program):
    """The loader finds librill under TensorFlow's names, and nothing of TensorFlow is loaded."""
    program = compile_program(ROOT / "tests" / "capi" / f"{PROGRAMS[0]}.c")
    loaded = run(["ldd", program], env=environment("rill")).stdout
    assert re.search(r"libtensorflow_cc\.so\.2 => \S*/build/\S+", loaded) and "site-packages" not in loaded, loaded


def exported(library):
    listed = run(["nm", "-D", "--defined-only", library]).stdout
    return {line.split()[2].split("@")[0] for line in listed.splitlines() if len(line.split()) == 3 and line.split()[1] in "TWVDBR"}


def declared(header):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.S)
    return set(re.findall(r"TF_CAPI_EXPORT\s+(?:extern\s+)?[^;(]*?\b(TF_\w+)\s*\(", text))


def declared_by_rill():
    text = "".join(re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S) for header in (ROOT / "include/rill").glob("*.h"))
    return set(re.findall(r"RILL_API\s+[^;(]*?\b(rill_\w+)\s*\(", text))


def test_librill_exports_its_headers_and_nothing_else():
    names = exported(BUILD / "librill.so")
    assert {n for n in names if not n.startswith("TF_")} == declared_by_rill()
    for header in HEADERS:
        theirs = declared(TENSORFLOW / "include/tensorflow/c" / header)
        assert not theirs - names, f"declared in TensorFlow's {header}, not exported"
        assert theirs == declared(ROOT / "include/tensorflow/c" / header), header
    experimental = declared(ROOT / "include/tensorflow/c/c_api_experimental.h")
    assert experimental <= names and experimental <= declared(TENSORFLOW / "include/tensorflow/c/c_api_experimental.h")


LAYOUT = r"""
#include <stddef.h>
#include <stdio.h>
#include "tensorflow/c/c_api.h"
#define SIZE(t) printf(#t " %zu\n", sizeof(t))
#define AT(t, m) printf(#t "." #m " %zu %zu\n", offsetof(t, m), sizeof(((t *)0)->m))
#define VALUE(v) printf(#v " %d\n", (int)(v))
int main(void) {
    SIZE(TF_Buffer); AT(TF_Buffer, data); AT(TF_Buffer, length); AT(TF_Buffer, data_deallocator);
    SIZE(TF_Output); AT(TF_Output, oper); AT(TF_Output, index); SIZE(TF_Input); AT(TF_Input, index);
    SIZE(TF_StringView); SIZE(TF_TString); SIZE(TF_DataType); SIZE(TF_Code); SIZE(TF_Bool);
    SIZE(TF_AllocatorAttributes); VALUE(TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE);
    SIZE(TF_AttrMetadata); AT(TF_AttrMetadata, is_list); AT(TF_AttrMetadata, list_size); AT(TF_AttrMetadata, type); AT(TF_AttrMetadata, total_size);
    SIZE(TF_WhileParams); AT(TF_WhileParams, ninputs); AT(TF_WhileParams, cond_graph); AT(TF_WhileParams, cond_inputs); AT(TF_WhileParams, cond_output);
    AT(TF_WhileParams, body_graph); AT(TF_WhileParams, body_inputs); AT(TF_WhileParams, body_outputs); AT(TF_WhileParams, name);
    @VALUES@
    return 0;
}
"""


def test_structs_and_values_are_those_of_tensorflow(tmp_path):
    """Sizes, offsets and enum values, by the compiler, from both sets of headers."""
    names = set()
    for header in ["tf_datatype.h", "tf_attrtype.h", "tf_status.h"]:
        names |= set(re.findall(r"\b(TF_[A-Z0-9_]+)\b(?:\s*=|\s+TSL_[A-Z_]+\b)", (TENSORFLOW / "include/tensorflow/c" / header).read_text()))
    source = tmp_path / "layout.c"
    source.write_text(LAYOUT.replace("@VALUES@", " ".join(f"VALUE({n});" for n in sorted(names))))
    answers = []
    for include in [TENSORFLOW / "include", ROOT / "include"]:
        program = tmp_path / "layout"
        done = run(["cc", "-std=gnu17", f"-I{include}", source, "-o", program])
        assert done.returncode == 0, done.stdout
        answers.append(run([program]).stdout)
    assert len(names) > 50 and answers[0] == answers[1]


def test_the_headers_are_c_and_c_plus_plus(tmp_path):
    for name, compiler in [("h.c", ["cc", "-std=c11", "-pedantic"]), ("h.cc", ["c++", "-std=c++14"])]:
        (tmp_path / name).write_text('#include "tensorflow/c/c_api.h"\nint main(void) { TF_DeleteStatus(TF_NewStatus()); return 0; }\n')
        done = run([*compiler, "-Wall", "-Wextra", "-Werror", "-c", f"-I{ROOT}/include", tmp_path / name, "-o", tmp_path / "h.o"])
        assert done.returncode == 0, done.stdout
