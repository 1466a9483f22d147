"""``python -m tests.bench [NAME …]``: the figures that the README quotes, as a Markdown table. NAME is a module of this folder."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: its threads must not spin against each other

import platform
import sys
from importlib import import_module

BENCHES = (
    "trace",
    "figures",
    "export",
    "page",
    "pages",
    "sessions",
    "checks",
    "long",
)  # each's rows() returns its lines of the table


def main(names):
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}. Ratios are ratios of medians.\n")
    print("| what | measured | target | method |")
    print("|---|---|---|---|")
    for name in names or BENCHES:
        for row in import_module(f"tests.bench.{name}").rows():
            print(f"| {row.what} | {row.measured} | {row.target} | {row.method} |", flush=True)


main(sys.argv[1:])
