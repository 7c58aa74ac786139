#!/usr/bin/env python3
"""Takes out the guards of list.toml one by one, and sees whether the test named for each fails.

    python3 tests/teeth/run.py            every guard
    python3 tests/teeth/run.py --quick    only: is each text to be changed still there, once
    python3 tests/teeth/run.py --only fence

Works on a copy of the tree in a temporary folder, with a target folder of its own there; both are
removed at the end. Exit code 0: all were caught. 1: one survived, did not compile, or does not fit.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FIELDS = {"name", "file", "old", "new", "test", "player"}
# What the copy leaves behind. It needs neither history nor build products.
LEFT = shutil.ignore_patterns(".git", "target", "__pycache__", "node_modules", ".venv")
# Quick to build: what is slow here is the compiler, not the tests.
QUICK_BUILD = {"CARGO_PROFILE_TEST_OPT_LEVEL": "0", "CARGO_PROFILE_TEST_DEBUG": "0", "RUST_BACKTRACE": "0"}


def main():
    options = arguments()
    teeth = tomllib.loads((HERE / "list.toml").read_text(encoding="utf-8"))["tooth"]
    check_list(teeth)
    teeth = [tooth for tooth in teeth if options.only in tooth["name"]]
    misfits = [tooth for tooth in teeth if not fits(tooth)]
    for tooth in misfits:
        print(f"DOES NOT FIT  {tooth['name']}: the old text is not exactly once in {tooth['file']}, or no such test")
    if misfits:
        return 1
    if options.quick:
        print(f"{len(teeth)} teeth fit")
        return 0
    with tempfile.TemporaryDirectory(prefix="jungle-teeth-") as folder:
        return run(teeth, options, pathlib.Path(folder))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only check that the list fits the sources")
    parser.add_argument("--only", default="", metavar="WORDS", help="only teeth with this in their name")
    parser.add_argument("--seconds", type=int, default=1200, help="for one build and test (default 1200)")
    return parser.parse_args()


def check_list(teeth):
    for tooth in teeth:
        if set(tooth) != FIELDS or tooth["old"] == tooth["new"] or len(tooth["test"]) != 2:
            sys.exit(f"list.toml: {tooth.get('name')}: the fields are {sorted(FIELDS)}, and new differs from old")
    names = [tooth["name"] for tooth in teeth]
    if len(set(names)) < len(names):
        sys.exit("list.toml: a name is there twice")


def fits(tooth):
    binary, test = tooth["test"]
    source = ROOT / "tests" / f"{binary}.rs"
    known = source.is_file() and f"fn {test}()" in source.read_text(encoding="utf-8")
    return known and (ROOT / tooth["file"]).read_text(encoding="utf-8").count(tooth["old"]) == 1


def run(teeth, options, folder):
    tree, target = folder / "tree", folder / "target"
    shutil.copytree(ROOT, tree, ignore=LEFT)
    say = lambda verdict, name, began: print(f"{time.monotonic() - began:5.0f} s  {name}: {verdict}", flush=True)
    began = time.monotonic()
    # With every guard in its place all must pass, or "caught" would mean nothing.
    for binary, test in sorted({tuple(tooth["test"]) for tooth in teeth}):
        one = time.monotonic()
        verdict = judge(tree, target, binary, test, options.seconds)
        if verdict != "SURVIVED":
            say(verdict, f"nothing taken out, {test}", one)
            print("a test fails as it is")
            return 1
    say("all pass", "nothing taken out", began)
    counts = {"caught": 0, "survived": 0, "other": 0}
    for tooth in teeth:
        one = time.monotonic()
        file = tree / tooth["file"]
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(tooth["old"], tooth["new"]), encoding="utf-8")
        verdict = judge(tree, target, *tooth["test"], options.seconds)
        file.write_text(text, encoding="utf-8")
        say(verdict, tooth["name"], one)
        kind = "caught" if verdict.startswith("caught") else "survived" if verdict == "SURVIVED" else "other"
        counts[kind] += 1
    took = (time.monotonic() - began) / 60
    if counts["other"]:
        print(f"{counts['other']} did not compile or were not run")
    print(f"{counts['caught']} caught, {counts['survived']} survived ({took:.1f} minutes)")
    return 0 if counts["caught"] == len(teeth) else 1


def judge(tree, target, binary, test, seconds):
    """`caught by ...`, `SURVIVED`, or what went wrong."""
    code, output = cargo_test(tree, target, binary, test, seconds)
    if code is None:
        return f"DID NOT END in {seconds} s"
    if "could not compile" in output:
        first = re.search(r"^error.*(?:\n.*){0,4}", output, re.MULTILINE)
        return f"DOES NOT COMPILE: {first.group(0) if first else ''}"
    if code == 0:
        return "SURVIVED" if "1 passed" in output else "NOT RUN"
    if not re.search(rf"^test {test} .*FAILED$|^    {test}$", output, re.MULTILINE):
        return f"FAILED OTHERWISE: {output[-500:]}"
    return f"caught by {binary}: {test}"


def cargo_test(tree, target, binary, test, seconds):
    command = ["cargo", "test", "--test", binary, "--target-dir", str(target), "--", "--exact", test]
    with subprocess.Popen(
        command,
        cwd=tree,
        env={**os.environ, **QUICK_BUILD},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
    return process.returncode, output


if __name__ == "__main__":
    sys.exit(main())
