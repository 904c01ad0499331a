#!/usr/bin/env python3
"""Writes docs/commands.md and man/rill.1 from what every command of the program says to --help; --check: fails when they are not up to date."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RILL = ROOT / "build" / os.environ.get("MODE", "release") / "rill"
MARKDOWN, TROFF = ROOT / "docs/commands.md", ROOT / "man/rill.1"

MARKDOWN_HEAD = """# The commands

Made by `scripts/make_manual.py` from `rill COMMAND --help`; do not edit. `man rill` shows the same after `make install`.
What to know when running a cluster is in [operator.md](operator.md), looking into files in [files.md](files.md).
"""
TROFF_TAIL = """.SH ENVIRONMENT
.TP
.B TF_CONFIG
the cluster and the task, for rill serve; set by rill up for the programs it runs
.TP
.B RILL_TARGET
set by rill up: the address of the task
.TP
.B RILL_PYTHON
the Python that rill run uses
"""


def ask(*words):
    return subprocess.run([RILL, *words], check=True, capture_output=True, text=True).stdout.rstrip("\n")


def rows(text):
    """Names and purposes in the table of a help that lists commands."""
    return re.findall(r"^  ([a-z]+) +(\S.*)$", text.split("\n\n", 2)[2], re.M)


def read_commands():
    """(words, purpose, help) of every command, those below it after it."""
    for name, purpose in rows(ask("--help")):
        text = ask(name, "--help")
        yield (name,), purpose, text
        if text.startswith(f"rill {name}: "):
            for below, below_purpose in rows(text):
                yield (name, below), below_purpose, ask(name, below, "--help")


def markdown(commands):
    out = [MARKDOWN_HEAD, "| | |\n|---|---|"]
    for words, purpose, _ in commands:
        title = "rill " + " ".join(words)
        out.append(f"| [`{title}`](#{title.replace(' ', '-')}) | {purpose} |")
    for words, _, text in commands:
        out.append(f"\n{'#' * (1 + len(words))} `rill {' '.join(words)}`\n\n```\n{text}\n```")
    return "\n".join(out) + f"\n\n{exit_codes()}\n"


def exit_codes():
    return ask("--help").splitlines()[-1]


def troff_text(text):
    """Lines as they are."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)


def troff(commands):
    version = ask("version").split()[1]
    out = [f'.\\" Made by scripts/make_manual.py; do not edit.\n.TH RILL 1 "" "Rill {version}" "User Commands"', ".SH NAME\nrill \\- the distributed TensorFlow runtime",
           ".SH SYNOPSIS\n.B rill\n.I COMMAND\n[\\fIFLAGS\\fR] ...", ".SH COMMANDS"]
    for words, purpose, _ in commands:
        if len(words) == 1:
            out.append(f".TP\n.B {words[0]}\n{troff_text(purpose)}")
    for words, _, text in commands:
        out.append(f".{'SH' if len(words) == 1 else 'SS'} rill {' '.join(words)}\n.nf\n{troff_text(text)}\n.fi")
    return "\n".join(out) + f"\n.SH EXIT STATUS\n{troff_text(exit_codes())}\n" + TROFF_TAIL


def main():
    commands = list(read_commands())
    stale = []
    for path, text in ((MARKDOWN, markdown(commands)), (TROFF, troff(commands))):
        if path.exists() and path.read_text() == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    if "--check" not in sys.argv[1:]:
        return print("wrote " + " ".join(stale) if stale else "the manual was up to date")
    print(f"not as the program says: {' '.join(stale)}; run scripts/make_manual.py" if stale else f"manual: {len(commands)} commands, up to date")
    return bool(stale)


sys.exit(main())
