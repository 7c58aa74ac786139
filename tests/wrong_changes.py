"""What the lists of small, wrong changes have in common: each change is made in a copy, and a test must fail.

Used by tests/mutations/run.py and tests/teeth/run.py.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SURVIVED = "SURVIVED"


def arguments(description, what, seconds):
    """A parser with the options of both lists."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only check that the list fits the sources")
    parser.add_argument("--only", default="", metavar="WORDS", help=f"only {what} with this in their name")
    parser.add_argument("--seconds", type=int, default=seconds, help=f"for one build and test (default {seconds})")
    return parser


def read_list(path, key, fields, only):
    """The changes of a list that have `only` in their name; ends the program if the list is ill-formed."""
    changes = tomllib.loads(path.read_text(encoding="utf-8"))[key]
    for change in changes:
        if set(change) != fields or change["old"] == change["new"]:
            sys.exit(f"{path.name}: {change.get('name')}: the fields are {sorted(fields)}, and new differs from old")
    names = [change["name"] for change in changes]
    if len(set(names)) < len(names):
        sys.exit(f"{path.name}: a name is there twice")
    return [change for change in changes if only in change["name"]]


def text_fits(change):
    """Whether the text to be changed is there, exactly once: a list that has rotted is told of."""
    return (ROOT / change["file"]).read_text(encoding="utf-8").count(change["old"]) == 1


def all_fit(changes, fits, problem):
    """Tells of each change that does not fit, and whether all do."""
    misfits = [change for change in changes if not fits(change)]
    for change in misfits:
        print(f"DOES NOT FIT  {change['name']}: {problem}, {change['file']}")
    return not misfits


def say(verdict, name, began):
    print(f"{time.monotonic() - began:5.0f} s  {name}: {verdict}", flush=True)


def make_each(changes, tree, judge, began):
    """Makes each change in the tree, has it judged, takes it back. The exit code: 0 if all were caught."""
    counts = {"caught": 0, "survived": 0, "other": 0}
    for change in changes:
        one = time.monotonic()
        file = tree / change["file"]
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(change["old"], change["new"]), encoding="utf-8")
        verdict = judge(change)
        file.write_text(text, encoding="utf-8")
        say(verdict, change["name"], one)
        kind = "caught" if verdict.startswith("caught") else "survived" if verdict == SURVIVED else "other"
        counts[kind] += 1
    took = (time.monotonic() - began) / 60
    if counts["other"]:
        print(f"{counts['other']} did not compile, or were not run to their end")
    print(f"{counts['caught']} caught, {counts['survived']} survived ({took:.1f} minutes)")
    return 0 if counts["caught"] == len(changes) else 1


def cargo_test(tree, arguments_of_test, environment, seconds):
    """The exit code and the output; `None` for the code if it did not end in time."""
    with subprocess.Popen(
        ["cargo", "test", "--test", *arguments_of_test],
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
