"""``python -m tests.mutants [--again] [--children N] [MODULE …]``: changes the functions of MODULE, all of core and settings where none.

MODULE is a path such as core/cells.py. Each change is tried against the tests that reach its line. Prints how many were killed and which
survived; ends with 1 where fewer than 95 % were killed. ``--again`` tries only what was not killed at the last run of a module.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: a forked child has none of its parent's threads, and would wait for them

import argparse
import json
import sys
from collections import Counter

import hypothesis
import pytest

from tests.mutants.changes import ROOT, Module, module_paths
from tests.mutants.page import explained
from tests.mutants.plugin import KILLED, SURVIVED, UNREACHED, Mutants
from tests.mutants.reach import Reach

LEAST = 0.95
TESTS = [
    "tests/core",
    "tests/settings",
    "tests/test_settings.py",
    "tests/test_advice.py",
    "tests/test_wrong_types.py",
    "tests/test_interventions.py",
    "tests/test_examples.py",
]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=module_paths())
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--children", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    everything = {path: Module(path) for path in module_paths()}
    modules = [everything[path] for path in asked.modules]
    outcomes = {module.path: _last(module) if asked.again else {} for module in modules}
    changes = [
        one for module in modules for one in module.changes if not outcomes[module.path].get(one.name, "").startswith(KILLED)
    ]

    left = Counter(change.module.path for change in changes)

    def say(change, outcome):
        outcomes[change.module.path][change.name] = outcome
        left[change.module.path] -= 1
        if not left[change.module.path]:
            _keep(change.module, outcomes[change.module.path])
        if not outcome.startswith(KILLED):
            print(f"mha_viz/{change.module.path}:{change.line}: {change.name} ({outcome})", flush=True)

    hypothesis.settings.register_profile(
        "mutants", database=None, derandomize=True, deadline=None, phases=["explicit", "generate"]
    )
    hypothesis.settings.load_profile("mutants")
    plugin = Mutants(list(everything.values()), changes, asked.children, Reach(everything.values()), say)
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "-s", "-q", "-m", "not browser"]
    status = pytest.main([*options, *(test for test in TESTS if (ROOT / test).exists())], plugins=[plugin])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return status
    return _report(outcomes)


def _report(outcomes):
    known = explained()
    for path, found in outcomes.items():
        for name, outcome in found.items():
            listed = (path, name) in known
            if listed == outcome.startswith(KILLED):
                print(f"docs/mutants.md {'names it, though it was killed' if listed else 'does not name it'}: {name}")
    every = [outcome for found in outcomes.values() for outcome in found.values()]
    counts = {kind: every.count(kind) for kind in (SURVIVED, UNREACHED)}
    killed = sum(outcome.startswith(KILLED) for outcome in every)
    share = killed / len(every) if every else 1
    print(
        f"killed {killed}, survived {counts[SURVIVED]}, reached by no test {counts[UNREACHED]}, total {len(every)}: {share:.1%}"
    )
    return int(share < LEAST)


def _kept(module):
    return ROOT / ".mutants" / f"{module.path.replace('/', '-')}.json"


def _keep(module, outcomes):
    found = {change.name: outcomes[change.name] for change in module.changes}  # in the order of the module
    _kept(module).write_text(json.dumps(found, ensure_ascii=False, indent=1))
    killed = sum(outcome.startswith(KILLED) for outcome in found.values())
    print(f"{module.path}: {killed} of {len(found)} killed, {killed / len(found):.1%}", flush=True)


def _last(module):
    """What became of each change of a module at its last run, of those that there still are."""
    if not _kept(module).exists():
        return {}
    last = json.loads(_kept(module).read_text())
    return {change.name: last[change.name] for change in module.changes if change.name in last}


sys.exit(main())
