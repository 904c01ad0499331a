"""Every command of the program: its help, its mistakes, its JSON, and the shells that complete it."""
import json
import os
import re
import shutil
import subprocess

import pytest

from cluster_process import RILL, ROOT, Cluster

MODE = os.environ.get("MODE", "release")


def rows(text):
    """Names and what they do, of the table in a help."""
    return re.findall(r"^  ([a-z]+) +(\S.*)$", text.split("\n\n", 2)[2].split("\n\n")[0], re.M)


def tables():
    def text(*words):
        return subprocess.run([RILL, *words, "--help"], capture_output=True, text=True, check=True).stdout

    out = {}
    for name, _ in rows(text()):
        whole = text(name)
        out[name] = [n for n, _ in rows(whole)] if whole.startswith("rill %s: " % name) else []
    return out


TABLES = tables()
WHOLE = [[name, *([below] if below else [])] for name, belows in TABLES.items() for below in belows or [None]]


def test_the_table_has_every_command():
    assert set(TABLES) >= {"serve", "up", "demo", "bench", "run", "stop", "status", "graph", "ckpt", "records", "events", "ops", "completion", "version"}
    assert TABLES["graph"] == ["run", "show", "ops", "dot"] and TABLES["completion"] == ["bash", "zsh"]


@pytest.mark.parametrize("words", WHOLE + [[name] for name, below in TABLES.items() if below], ids=" ".join)
def test_help(rill, words):
    done = rill(*words, "--help")
    assert "usage: rill " + " ".join(words) in done.out and done.err == ""


@pytest.mark.parametrize("words", WHOLE, ids=" ".join)
def test_an_unknown_flag_is_wrong_usage(rill, words):
    done = rill(*words, "--no-such-flag", code=2)
    assert "--no-such-flag" in done.err and done.err.startswith("rill " + " ".join(words)) and done.out == ""


def test_unknown_commands_are_wrong_usage(rill):
    assert "unknown command 'fly'" in rill("fly", code=2).err
    for name, below in TABLES.items():
        if below:
            assert "unknown command 'fly'" in rill(name, "fly", code=2).err
            assert "usage: rill " + name in rill(name, code=2).err


def test_version(rill):
    version = rill("version", "--json").json
    assert rill("version").out == "rill %s (%s protocol)\n" % (version["version"], version["protocol"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", version["version"])


def test_ops_as_json_are_those_of_the_text(rill):
    text = {}
    for line in rill("ops").out.splitlines():
        op, *types = line.split()
        text[op] = None if types == ["*"] else types
    listed = rill("ops", "--json").json
    assert {row["op"]: row["types"] for row in listed} == text and len(listed) > 900
    assert "float" in text["MatMul"] and [row["op"] for row in listed] == sorted(text)


def test_status_waits_for_tasks_that_start(rill):
    cluster = Cluster({"ps": 1, "worker": 1}, start=False)
    waiting = subprocess.Popen([RILL, "status", "--wait", "60", "--json", cluster.target("worker", 0)], stdout=subprocess.PIPE)
    with cluster:
        cluster.start()
        out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0 and [row["reachable"] for row in json.loads(out)] == [True, True]


def test_status_and_stop_as_json(rill):
    with Cluster({"worker": 2}) as cluster:
        assert [row["reachable"] for row in rill("status", "--json", cluster.target("worker", 0)).json] == [True, True]
        assert rill("stop", "--json", cluster.target("worker", 0)).json == {"stopped": True, "unreached": []}
    gone = rill("stop", "--json", "grpc://127.0.0.1:1", code=1)
    assert gone.json["stopped"] is False and "127.0.0.1:1" in gone.json["error"] and "rill stop" in gone.err
    row, = rill("status", "--json", "grpc://127.0.0.1:1", code=1).json
    assert row["address"] == "127.0.0.1:1" and row["reachable"] is False and row["error"]


# ---- Completion ----

def complete(*words):
    """What real bash offers for the last word."""
    script = 'eval "$("$1" completion bash)"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rill; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", RILL, RILL, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_bash_completes_commands():
    assert complete("") == ["--help", *TABLES]
    assert complete("st") == ["stop", "status"]
    assert complete("ckpt", "") == ["--help", *TABLES["ckpt"]] and complete("completion", "z") == ["zsh"]


@pytest.mark.parametrize("words", WHOLE, ids=" ".join)
def test_bash_completes_the_flags_of_every_command(rill, words):
    flags = re.findall(r"^  (--[a-z_-]+)", rill(*words, "--help").out, re.M)
    assert complete(*words, "--") == flags
    assert complete(*words, "--he") == [f for f in flags if f == "--help"]


def test_bash_leaves_other_words_to_files():
    assert complete("events", "da") == [] and complete("up", "--", "--qu") == [] and complete("up", "--qu") == ["--quiet"]


def test_zsh_takes_its_completion(rill, tmp_path):
    text = rill("completion", "zsh").out
    for name, help_text in rows(rill("--help").out):
        assert "'%s:%s'" % (name, help_text) in text and not set(":'") & set(help_text)
    if not shutil.which("zsh"):
        return
    script = """autoload -U compinit; compinit -u -d $1/dump; eval "$($2 completion zsh)"
        compadd() { shift; print -l -- $@ }
        _describe() { print -l -- ${below%%:*} }
        words=($2 $=3 "$4"); CURRENT=$#words; _rill"""

    def offered(before, word):
        done = subprocess.run(["zsh", "-f", "-c", script, "zsh", tmp_path, RILL, before, word], capture_output=True, text=True, timeout=60)
        assert done.stderr == "", done.stderr
        return done.stdout.split()

    assert offered("", "") == list(TABLES) and offered("graph", "") == TABLES["graph"]
    flags = re.findall(r"^  (--[a-z_-]+)", rill("up", "--help").out, re.M)
    assert offered("up", "--") == flags
    assert offered("ckpt ls", "--") == ["--json", "--help"]


# ---- The demo ----

def test_demo(rill, tmp_path):
    subprocess.run(["make", "-s", "MODE=" + MODE, "build/%s/examples/digits" % MODE], cwd=ROOT, check=True, capture_output=True)
    out = rill("demo", "--steps", 20, "--ps", 1, "--workers", 1, "--logdir", tmp_path).out
    assert "held-out accuracy" in out and "step 0/20" in out
    assert rill("ckpt", "ls", tmp_path).out.count("conv1")
    assert "--steps" in rill("demo", "--steps", -1, code=2).err
    alone = tmp_path / "rill"
    shutil.copy2(RILL, alone)
    done = subprocess.run([alone, "demo"], capture_output=True, text=True)
    assert done.returncode == 1 and "digits is not beside" in done.stderr


# ---- The benchmark ----

def test_bench(rill):
    numbers = rill("bench", "--seconds", 1, "--mb", 8, "--json").json
    assert all(v > 0 for v in numbers.values()) and numbers["pull_mb"] == 8
    assert numbers["ps_peak_bytes"] > numbers["ps_idle_bytes"] + 8e6
    assert numbers["small_steps_per_s"] <= numbers["small_steps"]  # they ran for a second at least
    text = rill("bench", "--seconds", 1, "--mb", 1).out
    assert "pull of    1 MB" in text and "CreateSession" in text and len(text.splitlines()) == 10
    alone = rill("bench", "barrier", "--seconds", 1, "--mb", 1, "--json").json
    assert alone["barrier_steps_per_s"] > 0 and not {"empty_steps", "small_steps", "pull_mb"} & set(alone)
    pushed = rill("bench", "push", "--mb", 16, "--json").json
    assert pushed["push_mb_per_s"] > 0 and pushed["ps_peak_bytes"] > pushed["ps_idle_bytes"] + 16e6
    assert "takes empty" in rill("bench", "fast", code=2).err
    assert "--mb" in rill("bench", "--mb", 0, code=2).err


# ---- Installed ----

def test_install_has_program_demo_manual_and_completion(tmp_path):
    subprocess.run(["make", "-s", "MODE=release", "install", "DESTDIR=%s" % tmp_path, "PREFIX=/usr"], cwd=ROOT, check=True, capture_output=True)
    usr = tmp_path / "usr"
    out = subprocess.run([usr / "bin/rill", "demo", "--steps=10", "--workers=1"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100).stdout
    assert "held-out accuracy" in out
    with open(os.path.join(ROOT, "man", "rill.1")) as f:
        assert (usr / "share/man/man1/rill.1").read_text() == f.read()
    script = 'source "$1"; complete -p rill; COMP_WORDS=(rill be); COMP_CWORD=1; _rill; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", usr / "share/bash-completion/completions/rill"], capture_output=True, text=True, check=True)
    assert done.stdout == "complete -F _rill rill\nbench\n"
    assert (usr / "share/zsh/site-functions/_rill").read_text().startswith("#compdef rill\n")
