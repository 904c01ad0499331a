#!/usr/bin/env python3
"""Checks that every #include in src/ and tests/ respects src/LAYERS: a module includes only the modules its line names."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def read_layers():
    allowed = {}
    for line in (ROOT / "src/LAYERS").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            module, below = line.split(":")
            allowed[module.strip()] = set(below.split())
    return allowed


def check_order(allowed):
    """A line may name only modules of the lines above it: no cycles."""
    above = set()
    for module, below in allowed.items():
        for name in below - above:
            yield f"src/LAYERS: {module} names {name}, which does not stand above it"
        above.add(module)


def check_file(path, module, allowed):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        target = found.group(1).split("/")[0]
        where = f"{path.relative_to(ROOT)}:{number}"
        if target not in allowed:
            # Generated protobuf headers and files of the own folder.
            continue
        if target != module and target not in allowed[module]:
            yield f"{where}: {module} may not include {target}"
        elif target != module and found.group(1).endswith("_internal.h"):
            yield f"{where}: {found.group(1)} is internal to {target}"


def main():
    allowed = read_layers()
    problems = list(check_order(allowed))
    files = 0
    for path in sorted((ROOT / "src").glob("*/**/*")):
        if path.suffix not in (".c", ".h", ".inc"):
            continue
        module = path.relative_to(ROOT / "src").parts[0]
        files += 1
        if module not in allowed:
            problems.append(f"src/{module} has no line in src/LAYERS")
            continue
        problems += check_file(path, module, allowed)
    print("\n".join(problems) or f"layers: {files} files respect src/LAYERS")
    return bool(problems)


sys.exit(main())
