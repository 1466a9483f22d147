"""``python -m tests.covered``: the branches of four rooms that their tests take; ends with 1 where it is fewer than 95 % of one."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOMS = ("core", "settings", "analysis", "sources")
LEAST = 0.95
TESTS = (
    "tests/core",
    "tests/settings",
    "tests/analysis",
    "tests/sources",
    "tests/studies",
    "tests/models",  # which take branches of sources where models are installed: make models
    "tests/test_settings.py",
    "tests/test_advice.py",
    "tests/test_wrong_types.py",
    "tests/test_interventions.py",
    "tests/test_recording.py",
    "tests/test_examples.py",
)


def main():
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "branches.json")
        measured = [f"--cov=mha_viz.{room}" for room in ROOMS]
        options = ["-n", "2", "--dist", "loadfile", "-m", "not browser", "--cov-branch", f"--cov-report=json:{report}"]
        status = subprocess.run([sys.executable, "-m", "pytest", *options, *measured, *TESTS]).returncode
        if status:
            return status
        files = json.loads(report.read_text())["files"]
    return said(files)


def said(files):
    """Print the branches of each room and those that no test takes, by file; 1 where a room has too few."""
    taken, there = Counter(), Counter()
    for name, file in files.items():
        room = Path(name).parts[1]
        taken[room] += file["summary"]["covered_branches"]
        there[room] += file["summary"]["num_branches"]
        if file["missing_branches"]:
            missing = (f"{start} to {end if end > 0 else 'the end'}" for start, end in file["missing_branches"])
            print(f"{name}: {', '.join(missing)}")
    for room in ROOMS:
        print(f"{room}: {taken[room]} of {there[room]} branches, {taken[room] / there[room]:.1%}")
    return int(any(taken[room] < LEAST * there[room] for room in ROOMS))


if __name__ == "__main__":
    sys.exit(main())
