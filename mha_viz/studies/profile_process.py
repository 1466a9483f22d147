"""The process in which points are measured, as the one that asks sees it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

import psutil

PATIENCE = 0.1  # seconds until it is said that there is no answer yet
ROOT = Path(__file__).parents[2]


class Request(TypedDict):
    """The call that is measured, as the worker takes it."""

    embed_dim: int
    num_heads: int
    seq_len: int
    batch_size: int
    dtype: str
    need_weights: bool
    mask: str


class Answer(TypedDict, total=False):
    """What the worker says: a ``value``, or why there is none."""

    value: float
    error: str
    died: bool
    slow: bool


class Worker:
    """A process of ``mha_viz.studies.profile_worker`` with so many ``threads``. It is asked, and then says, in dicts."""

    def __init__(self, threads: int) -> None:
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
        command = [sys.executable, "-m", "mha_viz.studies.profile_worker", str(threads)]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._lines: queue.Queue[Answer] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None  # a pipe
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._process.wait()  # so that it is closed for whoever reads that it died
        self._lines.put({"died": True})

    @property
    def closed(self) -> bool:
        return self._process.poll() is not None

    def ask(self, **request: object) -> None:
        assert self._process.stdin is not None  # a pipe
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:  # it died since, and says so
            return

    def said(self) -> Answer | None:
        """The answer to what was asked last, {"died": True} where this process or its fork is no more, None where there is none yet."""
        try:
            return self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            return None

    def close(self) -> None:
        """End the process, and what it forked; either may end by itself meanwhile, as by a Ctrl-C that all of them get."""
        forked = []
        if not self.closed:
            with suppress(psutil.NoSuchProcess):
                forked = psutil.Process(self._process.pid).children(recursive=True)
        for one in (*forked, self._process):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.wait()
