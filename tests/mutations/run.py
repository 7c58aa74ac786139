#!/usr/bin/env python3
"""Makes the mistakes of list.toml one by one, and sees whether the tests of the rules notice.

    python3 tests/mutations/run.py            every mistake, all four tests of the rules
    python3 tests/mutations/run.py --quick    only: is each text to be changed still there, once
    python3 tests/mutations/run.py --only waiver --test judges_agree

Works on a copy of the rules and the tests in a temporary folder, which is removed at the end.
Exit code 0: all were caught. 1: one survived, did not compile, or does not fit the sources.
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
# The fast ones first: the first that fails is named, and the others are not asked.
TESTS = ["rules_tables", "rules_examples", "rules_properties", "judges_agree"]
# What of the manifest the copy needs. The rules are std only, and so the copy builds in seconds.
TABLES = ("[package]", "[dev-dependencies", "[lints", "[profile")
FIELDS = {"name", "file", "old", "new", "player"}


def main():
    parser = wrong.arguments(__doc__, "mutations", 600)
    parser.add_argument("--test", action="append", choices=TESTS, help="ask only this test; may be repeated")
    options = parser.parse_args()
    mutations = wrong.read_list(LIST, "mutation", FIELDS, options.only)
    if not wrong.all_fit(mutations, wrong.text_fits, "the old text is not exactly once in"):
        return 1
    if options.quick:
        print(f"{len(mutations)} mutations fit")
        return 0
    with tempfile.TemporaryDirectory(prefix="jungle-mutations-") as folder:
        return run(mutations, options, pathlib.Path(folder))


def run(mutations, options, folder):
    tree = folder / "tree"
    copy_to(tree)
    began = time.monotonic()
    judged = lambda _: judge(tree, folder / "target", options.test or TESTS, options.seconds)
    # Without a mistake all must pass, or "caught" would mean nothing.
    verdict = judged(None)
    wrong.say(verdict, "nothing changed", began)
    if verdict != wrong.SURVIVED:
        print("the tests fail as they are")
        return 1
    return wrong.make_each(mutations, tree, judged, began)


def copy_to(tree):
    """The rules and the tests as a package of their own."""
    (tree / "src").mkdir(parents=True)
    shutil.copytree(wrong.ROOT / "src" / "rules", tree / "src" / "rules")
    (tree / "src" / "lib.rs").write_text("//! The rules alone.\n\npub mod rules;\n", encoding="utf-8")
    shutil.copytree(wrong.ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("mutations", "__pycache__"))
    shutil.copy(wrong.ROOT / "Cargo.lock", tree)
    kept, keep = [], False
    for line in (wrong.ROOT / "Cargo.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            keep = line.startswith(TABLES)
        if keep:
            kept.append(line)
    (tree / "Cargo.toml").write_text("\n".join(kept) + "\n", encoding="utf-8")


def judge(tree, target, tests, seconds):
    """`caught by ...`, `SURVIVED`, or what went wrong."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUDGES_AGREE")}
    for test in tests:
        code, output = wrong.cargo_test(tree, [test, "--target-dir", str(target)], environment, seconds)
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
    return wrong.SURVIVED


if __name__ == "__main__":
    sys.exit(main())
