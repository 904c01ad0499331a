#!/usr/bin/env python3
"""Prints the ten longest files and functions of src/; fails when a file is longer than 1,000 lines (tables excepted)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE_LIMIT = 1000
FUNCTION = re.compile(r"^[A-Za-z_][^;=#]*?\b(\w+)\([^;]*\)[^;]*\{$")


def functions(path):
    """(lines, name) of every function: from a line in column 1 that ends in { to the } in column 1."""
    start = name = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if name is None:
            found = FUNCTION.match(line)
            if found:
                start, name = number, found.group(1)
        elif line.startswith("}"):
            yield number - start + 1, name
            name = None


def is_table(lines):
    """A file whose lines are nearly all rows of data."""
    rows = sum(1 for line in lines if re.match(r'\s*[{"0-9]|\s*ROW\(', line))
    return rows > 0.8 * len(lines)


def main():
    sizes, longest, problems, total = [], [], [], 0
    for path in sorted((ROOT / "src").glob("*/**/*")):
        if path.suffix not in (".c", ".h", ".inc"):
            continue
        lines = path.read_text().splitlines()
        name = path.relative_to(ROOT)
        total += len(lines)
        sizes.append((len(lines), str(name)))
        longest += [(count, f"{name}: {function}") for count, function in functions(path)]
        if len(lines) > FILE_LIMIT and not is_table(lines):
            problems.append(f"{name} has {len(lines)} lines; the limit is {FILE_LIMIT}")
    for title, rows in (("longest files", sizes), ("longest functions", longest)):
        print(title)
        for count, name in sorted(rows, reverse=True)[:10]:
            print(f"  {count:5} {name}")
    print("\n".join(problems) or f"sizes: {len(sizes)} files, {total} lines, none above {FILE_LIMIT}")
    return bool(problems)


sys.exit(main())
