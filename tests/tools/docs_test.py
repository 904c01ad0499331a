"""What README.md and docs/tutorial.md tell a newcomer to type is typed, and goes well."""
import os
import re
import subprocess

import pytest

from cluster_process import ROOT, free_port

# Would run this test again, or does more than build: the demo is a target of its own.
LEFT_OUT = re.compile(r"^make (test|demo|fuzz|bench)\b")
pytestmark = pytest.mark.skipif(os.environ.get("MODE") == "asan", reason="the commands name the release build")


def commands(path):
    """The text's commands in one shell script, Python programs included; on ports that are free here."""
    with open(os.path.join(ROOT, path)) as f:
        blocks = re.findall(r"^```(sh|python)\n(.*?)^```", f.read(), re.M | re.S)
    script = "set -e\nset -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    for language, block in blocks:
        if language == "python":
            script += ".venv/bin/python - <<'END'\n%sEND\n" % block
        else:
            script += "".join(line + "\n" for line in block.splitlines() if not LEFT_OUT.match(line))
    for port in sorted(set(re.findall(r"localhost:(\d+)", script))):
        script = script.replace("localhost:" + port, "localhost:%d" % free_port())
    return script


@pytest.mark.time_limit(500)
@pytest.mark.parametrize("path", ["README.md", "docs/tutorial.md"])
def test_commands_do_what_the_text_says(path):
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", MAKEFLAGS="")
    environment.pop("MODE", None)
    done = subprocess.run(["bash", "-c", commands(path)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=450, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, "%s\n%s" % (done.stdout[-3000:], done.stderr[-3000:])
    if path.endswith("tutorial.md"):
        assert len(re.findall(r"held-out accuracy \d\d", done.stdout)) == 4
        assert re.search(r"300", done.stdout) and "5050" in done.stdout
    else:
        assert float(done.stdout.splitlines()[-1]) < 0.1, done.stdout  # the loss of the program, after its steps


def test_links_in_the_documents_lead_somewhere():
    pages = ["README.md", "CONTRIBUTING.md"] + ["docs/" + name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")]
    broken = []
    for page in pages:
        with open(os.path.join(ROOT, page)) as f:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", f.read()):
                if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), target)):
                    broken.append("%s -> %s" % (page, target))
    assert not broken, broken
