#!/usr/bin/env python3
"""Makes the mistakes of list.toml one by one, and sees whether the tests of the rules notice.

    python3 tests/mutations/run.py            every mistake, all four tests of the rules
    python3 tests/mutations/run.py --quick    only: is each text to be changed still there, once
    python3 tests/mutations/run.py --only waiver --test judges_agree

Works on a copy of the rules and the tests in a temporary folder, which is removed at the end.
Exit code 0: all were caught. 1: one survived, did not compile, or does not fit the sources.
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
# The fast ones first: the first that fails is named, and the others are not asked.
TESTS = ["rules_tables", "rules_examples", "rules_properties", "judges_agree"]
# What of the manifest the copy needs. The rules are std only, and so the copy builds in seconds.
TABLES = ("[package]", "[dev-dependencies", "[lints", "[profile")
FIELDS = {"name", "file", "old", "new", "player"}


def main():
    options = arguments()
    mutations = tomllib.loads((HERE / "list.toml").read_text(encoding="utf-8"))["mutation"]
    check_list(mutations)
    mutations = [m for m in mutations if options.only in m["name"]]
    misfits = [m for m in mutations if not fits(m)]
    for mutation in misfits:
        print(f"DOES NOT FIT  {mutation['name']}: the old text is not exactly once in {mutation['file']}")
    if misfits:
        return 1
    if options.quick:
        print(f"{len(mutations)} mutations fit")
        return 0
    with tempfile.TemporaryDirectory(prefix="jungle-mutations-") as folder:
        return run(mutations, options, pathlib.Path(folder))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only check that the list fits the sources")
    parser.add_argument("--only", default="", metavar="WORDS", help="only mutations with this in their name")
    parser.add_argument("--test", action="append", choices=TESTS, help="ask only this test; may be repeated")
    parser.add_argument("--seconds", type=int, default=600, help="for one test of one mutation (default 600)")
    return parser.parse_args()


def check_list(mutations):
    for mutation in mutations:
        if set(mutation) != FIELDS or mutation["old"] == mutation["new"]:
            sys.exit(f"list.toml: {mutation.get('name')}: the fields are {sorted(FIELDS)}, and new differs from old")
    names = [mutation["name"] for mutation in mutations]
    if len(set(names)) < len(names):
        sys.exit("list.toml: a name is there twice")


def fits(mutation):
    return (ROOT / mutation["file"]).read_text(encoding="utf-8").count(mutation["old"]) == 1


def run(mutations, options, folder):
    tree = folder / "tree"
    copy_to(tree)
    tests = options.test or TESTS
    say = lambda verdict, name, began: print(f"{time.monotonic() - began:5.0f} s  {name}: {verdict}", flush=True)
    began = time.monotonic()
    # Without a mistake all must pass, or "caught" would mean nothing.
    verdict = judge(tree, folder / "target", tests, options.seconds)
    say(verdict, "nothing changed", began)
    if verdict != "SURVIVED":
        print("the tests fail as they are")
        return 1
    counts = {"caught": 0, "survived": 0, "other": 0}
    for mutation in mutations:
        one = time.monotonic()
        file = tree / mutation["file"]
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(mutation["old"], mutation["new"]), encoding="utf-8")
        verdict = judge(tree, folder / "target", tests, options.seconds)
        file.write_text(text, encoding="utf-8")
        say(verdict, mutation["name"], one)
        kind = "caught" if verdict.startswith("caught") else "survived" if verdict == "SURVIVED" else "other"
        counts[kind] += 1
    took = (time.monotonic() - began) / 60
    if counts["other"]:
        print(f"{counts['other']} did not compile or did not end")
    print(f"{counts['caught']} caught, {counts['survived']} survived ({took:.1f} minutes)")
    return 0 if counts["caught"] == len(mutations) else 1


def copy_to(tree):
    """The rules and the tests as a package of their own."""
    (tree / "src").mkdir(parents=True)
    shutil.copytree(ROOT / "src" / "rules", tree / "src" / "rules")
    (tree / "src" / "lib.rs").write_text("//! The rules alone.\n\npub mod rules;\n", encoding="utf-8")
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("mutations", "__pycache__"))
    shutil.copy(ROOT / "Cargo.lock", tree)
    kept, keep = [], False
    for line in (ROOT / "Cargo.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            keep = line.startswith(TABLES)
        if keep:
            kept.append(line)
    (tree / "Cargo.toml").write_text("\n".join(kept) + "\n", encoding="utf-8")


def judge(tree, target, tests, seconds):
    """`caught by ...`, `SURVIVED`, or what went wrong."""
    for test in tests:
        code, output = cargo_test(tree, target, test, seconds)
        if code is None:
            return f"DID NOT END in {seconds} s ({test})"
        if "could not compile" in output:
            first = re.search(r"^error.*(?:\n.*){0,2}", output, re.MULTILINE)
            return f"DOES NOT COMPILE: {first.group(0) if first else ''}"
        if code != 0:
            failed = re.search(r"^test (\S+) .*FAILED$|^    (\w+)$", output, re.MULTILINE)
            if not failed:
                return f"FAILED OTHERWISE ({test}): {output[-500:]}"
            return f"caught by {test}: {failed.group(1) or failed.group(2)}"
    return "SURVIVED"


def cargo_test(tree, target, test, seconds):
    command = ["cargo", "test", "--test", test, "--target-dir", str(target)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUDGES_AGREE")}
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
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
