#!/usr/bin/env python3
"""Runs the tests: checks, C tests under the sanitizers, golden values, then pytest against real TensorFlow; `make test` calls it.

Every stage prints its title and time; the last line is "N passed, N failed", and the exit code is 0 only when nothing failed.
"""
import argparse
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TSAN_MODULES = ["net", "runtime", "cluster", "capi"]
PYTEST_FOLDERS = ["net", "gradients", "capi", "interop", "fault", "golden", "train", "perf"]
EAGER_FOLDERS = ["tools"]  # TensorFlow 2: in a process of their own, for the others switch it off
HELPER_FOLDERS = ["net", "gradients", "perf"]  # their C test programs are also used by the tests in Python
UNIT_TIMEOUT_S = 300
FUZZ_SECONDS = 4  # for each target
GOLDEN_TIMEOUT_S = 900
PYTEST_TIMEOUT_S = 2400
SILENCE_TIMEOUT_S = 600  # no test ended for so long; above the time limit of any one
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1",
}
BOTH = re.compile(r"^(\d+) passed, (\d+) failed", re.M)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED)  \] (\d+) test\(s\)", re.M)


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.stages, self.failures = [], []

    def add(self, what, passed, failed, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if failed:
            self.failures.append(what)


def environment(mode, **more):
    """Without make's own variables: a make inside must not look for the jobserver of the one outside."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MODE")}
    for name, options in SANITIZERS.items():
        env[name] = options + (":" + env[name] if env.get(name) else "")
    env.update(MODE=mode, TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", **more)
    return env


def stage(totals, title, function, *args):
    print(f"\n== {title}", flush=True)
    began, passed, failed = time.time(), totals.passed, totals.failed
    function(totals, *args)
    took = time.time() - began
    totals.stages.append((title, totals.passed - passed, totals.failed - failed, took))
    print(f"   {took:.0f} s", flush=True)


def build(mode, targets):
    command = ["make", "-s", "--no-print-directory", f"-j{os.cpu_count()}", f"MODE={mode}", *targets]
    if subprocess.run(command, cwd=ROOT, env=environment(mode), stdin=subprocess.DEVNULL).returncode != 0:
        print(f"\nthe build failed: MODE={mode}\n0 passed, 1 failed")
        sys.exit(1)


def run_check(totals, script, *arguments, python=sys.executable):
    command = [python, ROOT / "scripts" / script, *arguments]
    ok = subprocess.run(command, cwd=ROOT, env=environment("release"), stdin=subprocess.DEVNULL).returncode == 0
    totals.add(script, int(ok), int(not ok))


def run_compatibility(totals):
    run_check(totals, "make_compatibility.py", "--check", python=ROOT / ".venv/bin/python")


def counts(text, code):
    """Tests passed and failed by what a test program printed; a crash is one failure."""
    both = BOTH.search(text)
    if both:
        passed, failed = int(both.group(1)), int(both.group(2))
    else:
        found = CMOCKA.findall(text)
        passed = sum(int(n) for word, n in found if word == "PASSED")
        failed = sum(int(n) for word, n in found if word == "FAILED")
        if not found:
            passed, failed = int(code == 0), int(code != 0)
    if code != 0 and failed == 0:
        failed = 1
    return passed, failed


def run_program(totals, mode, program, timeout_s, *arguments):
    name = program.relative_to(ROOT / "build" / mode / "tests")
    command = [str(program), *arguments]
    if mode == "tsan" and subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0:
        command = ["setarch", "-R", *command]  # ThreadSanitizer cannot place its shadow under some address randomisation
    began = time.time()
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment(mode), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout_s)
        text, code = done.stdout.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired as e:
        text, code = (e.stdout or b"").decode(errors="replace") + f"\nno end after {timeout_s} s\n", 124
    passed, failed = counts(text, code)
    if failed:
        print(text)
    print(f"   {'FAIL' if failed else 'ok  '} {name}: {passed} passed, {failed} failed, {time.time() - began:.1f} s", flush=True)
    totals.add(f"{mode} {name}", passed, failed)
    return text


def programs(modules, mode):
    """The C test programs of the modules; those of golden/ run in their own stage."""
    found = sorted(p for p in (ROOT / "tests").glob("*/*_test.c") if p.parent.name != "golden")
    return [ROOT / "build" / mode / p.relative_to(ROOT).with_suffix("") for p in found if not modules or p.parent.name in modules]


def run_unit(totals, mode, modules):
    wanted = programs(modules, mode)
    if not wanted:
        print("   none")
        return
    build(mode, [str(p.relative_to(ROOT)) for p in wanted])
    for program in wanted:
        run_program(totals, mode, program, UNIT_TIMEOUT_S)


def run_golden(totals, mode):
    program = ROOT / "build" / mode / "tests/golden/golden_test"
    build(mode, [str(program.relative_to(ROOT))])
    for passes in ("on", "off"):
        text = run_program(totals, mode, program, GOLDEN_TIMEOUT_S, "--passes", passes)
        print("".join(f"   passes {passes}: {line}\n" for line in text.splitlines() if line.startswith("golden cases:")), end="")


def run_ops(totals, mode):
    program = ROOT / "build" / mode / "tests/golden/ops_test"
    build(mode, [str(program.relative_to(ROOT))])
    text = run_program(totals, mode, program, GOLDEN_TIMEOUT_S)
    print("".join(f"   {line}\n" for line in text.splitlines() if line.startswith(("registry:", "op cases:"))), end="")


def run_fuzz(totals):
    """Replays what once failed and tries random input for a few seconds."""
    command = [sys.executable, str(ROOT / "scripts/run_fuzz.py"), "--seconds", str(FUZZ_SECONDS)]
    text, code = follow(command, environment("fuzz"))
    passed, failed = counts(text, code)
    totals.add("fuzz targets", passed, failed)


def follow(command, env):
    """Runs a program, shows and returns what it prints; ends it and all it started when it is silent or takes too long."""
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    seen, deadline = b"", time.time() + PYTEST_TIMEOUT_S
    while True:
        wait_s = min(SILENCE_TIMEOUT_S, deadline - time.time())
        if wait_s <= 0 or not select.select([process.stdout], [], [], wait_s)[0]:
            print(f"\nstopped: silent for {SILENCE_TIMEOUT_S} s, or no end after {PYTEST_TIMEOUT_S} s", flush=True)
            os.killpg(process.pid, signal.SIGKILL)
            return seen.decode(errors="replace"), process.wait()
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            return seen.decode(errors="replace"), process.wait()
        seen += chunk
        sys.stdout.buffer.write(chunk)
        sys.stdout.flush()


def run_pytest(totals, mode, folders, *options):
    folders = [f for f in folders if any((ROOT / "tests" / f).glob("*test*.py"))]
    if not folders:
        print("   none")
        return
    helpers = [str(p.relative_to(ROOT)) for f in folders if f in HELPER_FOLDERS for p in programs([f], mode)]
    build(mode, [f"build/{mode}/rill", *([f"build/{mode}/librill.so"] if "capi" in folders else []), *helpers])
    command = [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", "-ra",
               "-o", f"faulthandler_timeout={SILENCE_TIMEOUT_S - 30}", *options, *[f"tests/{f}" for f in folders]]
    text, code = follow(command, environment(mode))
    last = ([line for line in text.splitlines() if re.search(r"\d+ (passed|failed|skipped|deselected|error)", line)] or [""])[-1]
    number = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    failed = number.get("failed", 0) + number.get("error", 0)
    if code not in (0, 5) and failed == 0:  # 5: the marker selected nothing
        failed = 1
    totals.add(f"pytest {mode} {' '.join(folders)}", number.get("passed", 0), failed, number.get("skipped", 0))


def run_everything(totals):
    build("release", ["build/release/rill", "build/release/librill.so"])
    stage(totals, "layers", run_check, "check_layers.py")
    stage(totals, "sizes", run_check, "check_sizes.py")
    stage(totals, "list of ops", run_compatibility)
    stage(totals, "manual", run_check, "make_manual.py", "--check")
    stage(totals, "C tests, AddressSanitizer, LeakSanitizer, UndefinedBehaviorSanitizer", run_unit, "asan", [])
    stage(totals, "C tests, ThreadSanitizer: " + ", ".join(TSAN_MODULES), run_unit, "tsan", TSAN_MODULES)
    stage(totals, "golden values, in one process, AddressSanitizer", run_golden, "asan")
    stage(totals, "every op and type, in one process, AddressSanitizer", run_ops, "asan")
    stage(totals, "parsers, random input, clang's sanitizers", run_fuzz)
    stage(totals, "real TensorFlow: " + ", ".join(PYTEST_FOLDERS), run_pytest, "release", PYTEST_FOLDERS)
    stage(totals, "real TensorFlow 2: " + ", ".join(EAGER_FOLDERS), run_pytest, "release", EAGER_FOLDERS)
    stage(totals, "real TensorFlow, AddressSanitizer", run_pytest, "asan", PYTEST_FOLDERS, "-m", "asan")
    stage(totals, "real TensorFlow 2, AddressSanitizer", run_pytest, "asan", EAGER_FOLDERS, "-m", "asan")


def run_module(totals, module):
    if not (ROOT / "tests" / module).is_dir():
        print(f"there is no tests/{module}; known: " + " ".join(sorted(p.name for p in (ROOT / "tests").iterdir() if p.is_dir())))
        sys.exit(2)
    if module == "fuzz":
        stage(totals, "parsers, random input, clang's sanitizers", run_fuzz)
        return
    if module == "golden":
        stage(totals, "golden values, in one process, AddressSanitizer", run_golden, "asan")
        stage(totals, "every op and type, in one process, AddressSanitizer", run_ops, "asan")
    else:
        stage(totals, f"C tests of {module}, AddressSanitizer", run_unit, "asan", [module])
    if module in TSAN_MODULES:
        stage(totals, f"C tests of {module}, ThreadSanitizer", run_unit, "tsan", [module])
    stage(totals, f"real TensorFlow: {module}", run_pytest, "release", [module])


def print_summary(totals):
    print("\n== summary")
    for title, passed, failed, took in totals.stages:
        print(f"   {passed:5} passed {failed:4} failed {took:6.0f} s  {title}")
    for what in totals.failures:
        print(f"   FAILED: {what}")
    if totals.skipped:
        print(f"   {totals.skipped} skipped")
    print(f"{totals.passed} passed, {totals.failed} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", nargs="?", help="one folder of tests/")
    parser.add_argument("--unit-only", action="store_true", help="only the C tests")
    parser.add_argument("--mode", default="asan", help="of --unit-only")
    args = parser.parse_args()
    totals = Totals()
    if args.unit_only:
        stage(totals, f"C tests, MODE={args.mode}", run_unit, args.mode, [args.module] if args.module else [])
    elif args.module:
        run_module(totals, args.module)
    else:
        run_everything(totals)
    print_summary(totals)
    sys.exit(1 if totals.failed or not totals.passed else 0)


main()
