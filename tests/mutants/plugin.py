"""A plugin of pytest that runs, in place of the tests, every change against the tests that reach its line.

Libraries and tests are imported once. Each change is made in a child that the process forks: it gives living functions the code of the
changed module, so that names that others imported are changed as well, decorated functions and methods too. A change of a line that
runs at import alone has no such code and is not made.
"""

import gc
import os
import pickle
import resource
import signal
import sys
import time
from collections import defaultdict
from types import CodeType, FunctionType

import coverage
import pytest
from _pytest.runner import runtestprotocol

KILLED, SURVIVED, UNREACHED, SLOW = "killed", "survived", "no test reaches it", "killed: it did not end"
MEMORY = 4 << 30  # more than any test takes; a change that asks for more fails


class Mutants:
    """Finds out which tests reach which line, then tells ``say(change, outcome)`` what became of each change."""

    def __init__(self, modules, changes, children, reach, say):
        self.modules, self.changes, self.children, self.reach, self.say = modules, changes, children, reach, say
        self.context = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Run the changes."""
        session.config._tmp_path_factory.getbasetemp()  # one for all children
        functions = _living(self.modules)
        gc.collect()
        gc.freeze()  # a child that collects garbage need not copy the pages of what is here
        self.items = session.items
        self.reach.learn(_in_child(self.measure))
        by_name = {item.nodeid: item for item in session.items}
        reached, seconds = self.reach.by_line(by_name)
        queue = list(self.changes)
        running = {}
        while queue or running:
            while queue and len(running) < self.children:
                change = queue.pop(0)
                names = sorted(reached[change.module.path, change.line], key=seconds.get)
                if not names:
                    self.say(change, UNREACHED)
                    continue
                limit = 10 + 10 * sum(map(seconds.get, names))
                pid = os.fork()
                if pid == 0:
                    _try(change, functions[change.module.path], [by_name[name] for name in names], limit)
                running[pid] = change
            if running:
                pid, status = os.wait()
                code = os.waitstatus_to_exitcode(status)
                self.say(running.pop(pid), SURVIVED if code == 0 else KILLED if code == 1 else SLOW)
        return True

    def measure(self):
        """For each file of tests whose lines are not known: which lines of the modules each of its tests reaches, and its seconds.

        What a fixture reaches counts for every test that asks for it.
        """
        self.coverage = coverage.Coverage(
            data_file=None, include=[str(module.file) for module in self.modules], config_file=False
        )
        found = defaultdict(dict)
        users = defaultdict(set)
        self.coverage.start()
        for item in self.items:
            file = item.nodeid.partition("::")[0]
            if self.reach.knows(file):
                continue
            for context in (item.nodeid, *(f"fixture {name}" for name in item.fixturenames)):
                users[context].add(item.nodeid)
            started = time.process_time()
            self.enter(item.nodeid)
            reports = runtestprotocol(item, log=False, nextitem=None)
            self.leave()
            found[file][item.nodeid] = {"seconds": time.process_time() - started, "lines": defaultdict(set)}
            failed = [report for report in reports if report.failed]
            if failed:
                raise RuntimeError(f"{item.nodeid} fails without a change: {failed[0].longrepr}")
        self.coverage.stop()
        data = self.coverage.get_data()
        for module in self.modules:
            for line, contexts in data.contexts_by_lineno(str(module.file)).items():
                for test in set().union(*(users[context] for context in contexts)):
                    found[test.partition("::")[0]][test]["lines"][module.path].add(line)
        return {file: dict(tests) for file, tests in found.items()}

    def enter(self, context):
        self.context.append(context)
        self.coverage.switch_context(context)

    def leave(self):
        self.context.pop()
        self.coverage.switch_context(self.context[-1] if self.context else "")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        """Tell the lines that a fixture reaches, which one test alone may set up, from the test's."""
        if not self.context:
            return (yield)
        self.enter(f"fixture {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self.leave()


def _living(modules):
    """The functions that were made from each module, by its path."""
    paths = {str(module.file): module.path for module in modules}
    found = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename in paths:
            found[paths[one.__code__.co_filename]].append(one)
    return found


def _codes(code):
    """Every code in ``code``, by its name and first line."""
    found = {}
    for one in code.co_consts:
        if isinstance(one, CodeType):
            found[one.co_qualname, one.co_firstlineno] = one
            found |= _codes(one)
    return found


def _in_child(work):
    """What ``work()`` gives, in a child: this process stays as it is after its imports."""
    end, start = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = True, work()
        except BaseException as error:
            answer = False, str(error)
        with os.fdopen(start, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        worked, answer = pickle.load(pipe)
    os.waitpid(pid, 0)
    if not worked:
        raise RuntimeError(answer)
    return answer


def _try(change, functions, items, seconds):
    """Make the change, run the tests until one fails, and end: with 0 if none does, with 1 if one does, by a signal after ``seconds``."""
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(10 * seconds) + 60)  # where it waits
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 3))
        with open("/proc/self/statm") as sizes:
            resource.setrlimit(resource.RLIMIT_AS, (int(sizes.read().split()[0]) * resource.getpagesize() + MEMORY,) * 2)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        for names_kept in (False, True):
            codes = _codes(compile(change.source(names_kept), str(change.module.file), "exec", dont_inherit=True))
            for function in functions:
                new = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
                if new is not None and new.co_freevars == function.__code__.co_freevars:
                    function.__code__ = new
        code = int(any(report.failed for item in items for report in runtestprotocol(item, log=False, nextitem=None)))
    finally:
        sys.stdout.flush()
        os._exit(code)
