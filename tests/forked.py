"""A process that has imported what takes seconds to import, and forks to run a test's program: each run counts its own memory."""

import json
import subprocess
import sys

from tests.conftest import ROOT

# Reads the arguments of a run, a line of JSON each; the child that it forks for them prints a line of JSON, or what went wrong.
LOOP = """
def _serve():
    import json, os, sys, traceback

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                answer = {"result": measure(*json.loads(line))}
            except BaseException:
                answer = {"raised": traceback.format_exc()}
            print(json.dumps(answer), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"raised": f"it ended with status {status}"}), flush=True)

_serve()
"""


class Forked:
    """Runs ``measure(*arguments)`` of a program, each time in a child of one process."""

    def __init__(self, program, **environment):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", program + LOOP], cwd=ROOT, env=environment or None, **pipes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()  # the end of its input is its end

    def __call__(self, *arguments):
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        assert "raised" not in answer, answer["raised"]
        return answer["result"]
