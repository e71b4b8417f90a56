#!/usr/bin/env python3
"""Counts squad's production lines: tests/lines.py [ROOT]

By module: files, lines (with comments and blank lines, without tests), lines of tables. Then the sum of what reads and
routes (route, parse, review/wording and their tables), the share of functions over 60 lines, and the median length of a
file. ROOT is the project's folder, another checkout's for a comparison. It counts and does not judge.
"""

import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
FUNCTION = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?fn \w+")
TESTS = re.compile(r"^#\[cfg\((?:all\()?test\b.*\]\nmod \w+ \{", re.MULTILINE)
LONG = 60


def production(path):
    """The lines of a file before its tests, or none of a file of tests."""
    parts = path.relative_to(ROOT).parts
    if "tests" in parts or path.name in ("tests.rs", "samples.rs", "testing.rs") or path.stem.endswith("_tests"):
        return []
    return TESTS.split(path.read_text(encoding="utf8"))[0].splitlines()


def functions(lines):
    """How long each function with a body is: rustfmt closes it at the column where it begins."""
    for start, line in enumerate(lines):
        begins = FUNCTION.match(line)
        if begins and not line.endswith(";"):
            ends = (at for at in range(start, len(lines)) if lines[at].startswith(begins[1] + "}"))
            yield next(ends, start) - start + 1


def main():
    files = {path: lines for path in sorted((ROOT / "src").rglob("*.rs")) if (lines := production(path))}
    tables = {path: path.read_text(encoding="utf8").splitlines() for path in sorted((ROOT / "src").rglob("*.txt"))}
    build = ROOT / "build.rs"
    if build.exists():
        files[build] = production(build)
    below = lambda paths, *folders: sum(
        len(lines) for path, lines in paths.items() if path.relative_to(ROOT).as_posix().startswith(folders)
    )
    modules = {}
    for path, lines in files.items():
        name = path.relative_to(ROOT).parts[1:2] or ("build",)
        modules.setdefault(name[0].removesuffix(".rs"), []).append(len(lines))
    print(f"{'module':<12} {'files':>6} {'lines':>7} {'tables':>7}")
    for module, lengths in sorted(modules.items()):
        print(f"{module:<12} {len(lengths):>6} {sum(lengths):>7} {below(tables, f'src/{module}/'):>7}")
    reading = ("src/route/", "src/parse/", "src/review/wording", "src/model/lists", "build.rs")
    print(f"{'all':<12} {len(files):>6} {sum(map(len, files.values())):>7} {sum(map(len, tables.values())):>7}")
    print(f"\nroute, its tables, parse and review/wording: {below(files, *reading) + below(tables, *reading)}")
    lengths = [length for lines in files.values() for length in functions(lines)]
    long = sum(length > LONG for length in lengths)
    print(f"functions over {LONG} lines: {long} of {len(lengths)} ({100 * long / len(lengths):.2f} %)")
    print(f"median file: {statistics.median(map(len, files.values())):.0f} lines")


if __name__ == "__main__":
    main()
