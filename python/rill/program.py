"""The program `rill` of an installed wheel."""
import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "rill")
    os.environ.setdefault("RILL_PYTHON", sys.executable)
    os.execv(program, [program] + sys.argv[1:])
