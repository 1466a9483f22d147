"""Which tests reach which line, kept from run to run: a file of tests is measured anew when it or what it tests has changed."""

import hashlib
import pickle
from collections import defaultdict

from tests.mutants.changes import ROOT

KEPT = ROOT / ".mutants" / "reach.pickle"


class Reach:
    """By file of tests: for each test its seconds, and the lines that it reaches by module."""

    def __init__(self, modules):
        self.tested = "".join(module.file.read_text() for module in modules)
        self.files = pickle.loads(KEPT.read_bytes()) if KEPT.exists() else {}

    def digest(self, file):
        return hashlib.sha256(((ROOT / file).read_text() + self.tested).encode()).hexdigest()

    def knows(self, file):
        return file in self.files and self.files[file]["digest"] == self.digest(file)

    def learn(self, found):
        """Add what was measured, by file."""
        self.files |= {file: {"digest": self.digest(file), "tests": tests} for file, tests in found.items()}
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_bytes(pickle.dumps(self.files))

    def by_line(self, names):
        """The tests of ``names`` by module and line, and the seconds of each."""
        reached, seconds = defaultdict(set), {}
        for file in self.files.values():
            for test in file["tests"].keys() & names:
                seconds[test] = file["tests"][test]["seconds"]
                for module, lines in file["tests"][test]["lines"].items():
                    for line in lines:
                        reached[module, line].add(test)
        return reached, seconds
