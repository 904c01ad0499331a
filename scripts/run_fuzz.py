#!/usr/bin/env python3
"""Runs the fuzz targets of tests/fuzz: replays what once failed and the seeds, then tries random input for a while.

usage: run_fuzz.py [--seconds N] [TARGET...]; `make fuzz` calls it. What is found new stays in build/fuzz/corpus; an input that fails is printed and left in
build/fuzz/failures: put it into tests/fuzz/failures/TARGET when it is fixed. The last line is "N passed, N failed".
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tests/fuzz"
BUILD = ROOT / "build/fuzz"
OPTIONS = ["-timeout=20", "-rss_limit_mb=3000", "-malloc_limit_mb=1500", "-print_final_stats=0", "-close_fd_mask=1", "-use_value_profile=0", "-verbosity=0"]
MAX_BYTES = {"text": 500, "server": 2000, "http2": 2000, "request": 4000}


def targets():
    return sorted(p.name[:-len("_fuzz.c")] for p in SOURCES.glob("*_fuzz.c"))


def build(names):
    """Ends the program when it fails."""
    programs = [f"build/fuzz/tests/fuzz/{name}_fuzz" for name in names]
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MODE", "CC")}
    if subprocess.run(["make", "-s", "--no-print-directory", f"-j{os.cpu_count()}", "MODE=fuzz", *programs], cwd=ROOT, env=env, stdin=subprocess.DEVNULL).returncode != 0:
        print("the build failed: MODE=fuzz\n0 passed, 1 failed")
        sys.exit(1)


def run(name, seconds):
    """Whether nothing failed, and what it printed."""
    corpus, failures = BUILD / "corpus" / name, BUILD / "failures" / name
    corpus.mkdir(parents=True, exist_ok=True)
    failures.mkdir(parents=True, exist_ok=True)
    folders = [str(p) for p in (corpus, SOURCES / "corpus" / name, SOURCES / "failures" / name) if p.is_dir()]
    program = str(BUILD / "tests/fuzz" / (name + "_fuzz"))
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=1500:quarantine_size_mb=32", UBSAN_OPTIONS="print_stacktrace=1")
    symbolizer = shutil.which("llvm-symbolizer-14")
    if symbolizer:
        env["ASAN_SYMBOLIZER_PATH"] = symbolizer
    command = [program, *OPTIONS, f"-max_len={MAX_BYTES.get(name, 20000)}", f"-max_total_time={seconds}", f"-artifact_prefix={failures}/", "-seed=1", *folders]
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + 120)
        return done.returncode == 0, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return False, (e.stdout or b"").decode(errors="replace") + "\nno end\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300, help="for each target")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets()))
    args = parser.parse_args()
    names = args.targets or targets()
    build(names)
    failed = []
    for name in names:
        ok, text = run(name, args.seconds)
        failed += [] if ok else [name]
        print(f"   {'ok  ' if ok else 'FAIL'} {name}: {args.seconds} s" + ("" if ok else "\n" + text[-6000:]), flush=True)
    print("".join(f"FAILED {name}\n" for name in failed) + f"{len(names) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
