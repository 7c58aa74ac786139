#!/usr/bin/env python3
"""Takes out the guards of list.toml one by one, and sees whether the test named for each fails.

    python3 tests/teeth/run.py            every guard
    python3 tests/teeth/run.py --quick    only: is each text to be changed still there, once
    python3 tests/teeth/run.py --only fence

Works on a copy of the tree in a temporary folder, with a target folder of its own there; both are
removed at the end. Exit code 0: all were caught. 1: one survived, did not compile, or does not fit.
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import wrong_changes as wrong

LIST = pathlib.Path(__file__).resolve().parent / "list.toml"
FIELDS = {"name", "file", "old", "new", "test", "player"}
# What the copy leaves behind. It needs neither history nor build products.
LEFT = shutil.ignore_patterns(".git", "target", "__pycache__", "node_modules", ".venv")
# Quick to build: what is slow here is the compiler, not the tests.
QUICK_BUILD = {"CARGO_PROFILE_TEST_OPT_LEVEL": "0", "CARGO_PROFILE_TEST_DEBUG": "0", "RUST_BACKTRACE": "0"}


def main():
    options = wrong.arguments(__doc__, "teeth", 1200).parse_args()
    teeth = wrong.read_list(LIST, "tooth", FIELDS, options.only)
    for tooth in teeth:
        if len(tooth["test"]) != 2:
            sys.exit(f"list.toml: {tooth['name']}: test is a test program and a test")
    if not wrong.all_fit(teeth, fits, "no such test, or the old text is not exactly once in"):
        return 1
    if options.quick:
        print(f"{len(teeth)} teeth fit")
        return 0
    with tempfile.TemporaryDirectory(prefix="jungle-teeth-") as folder:
        return run(teeth, options, pathlib.Path(folder))


def fits(tooth):
    """The test is named by its program and, where that has modules, by its path in there."""
    binary, test = tooth["test"]
    *modules, function = test.split("::")
    source = wrong.ROOT / "tests" / (f"{binary}/{modules[0]}.rs" if modules else f"{binary}.rs")
    known = source.is_file() and f"fn {function}()" in source.read_text(encoding="utf-8")
    return known and wrong.text_fits(tooth)


def run(teeth, options, folder):
    tree, target = folder / "tree", folder / "target"
    shutil.copytree(wrong.ROOT, tree, ignore=LEFT)
    began = time.monotonic()
    # With every guard in its place all must pass, or "caught" would mean nothing.
    for binary, test in sorted({tuple(tooth["test"]) for tooth in teeth}):
        one = time.monotonic()
        verdict = judge(tree, target, binary, test, options.seconds)
        if verdict != wrong.SURVIVED:
            wrong.say(verdict, f"nothing taken out, {test}", one)
            print("a test fails as it is")
            return 1
    wrong.say("all pass", "nothing taken out", began)
    return wrong.make_each(teeth, tree, lambda tooth: judge(tree, target, *tooth["test"], options.seconds), began)


def judge(tree, target, binary, test, seconds):
    """`caught by ...`, `SURVIVED`, or what went wrong."""
    arguments = [binary, "--target-dir", str(target), "--", "--exact", test]
    code, output = wrong.cargo_test(tree, arguments, {**os.environ, **QUICK_BUILD}, seconds)
    if code is None:
        return f"DID NOT END in {seconds} s"
    if "could not compile" in output:
        first = re.search(r"^error.*(?:\n.*){0,4}", output, re.MULTILINE)
        return f"DOES NOT COMPILE: {first.group(0) if first else ''}"
    if code == 0:
        return wrong.SURVIVED if "1 passed" in output else "NOT RUN"
    if not re.search(rf"^test {test} .*FAILED$|^    {test}$", output, re.MULTILINE):
        return f"FAILED OTHERWISE: {output[-500:]}"
    return f"caught by {binary}: {test}"


if __name__ == "__main__":
    sys.exit(main())
