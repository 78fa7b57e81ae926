"""Trials that may crash, hang or swell a process, each in a program of its own that is started anew when one does."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from equipment import sanitizers
from equipment.process_limits import answers_within

ADDRESS_SPACE_BYTES = 4 << 30
"""That a program may take beyond what it has before its first trial."""
RESIDENT_BYTES = 256 << 20
"""That a trial may add to the memory in use."""
SECONDS = 30.0
"""Of a processor's time that a trial may take."""

_TESTS = str(Path(__file__).parents[1])


class Trials:
    """A program that runs trials, as long as it is in use as a context.

    Parameters
    ----------
    module : str
        Of the program, which calls `serve`.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        self._program: subprocess.Popen[bytes] | None = None

    def run(self, request: Any) -> dict[str, Any]:
        """Run a trial.

        Parameters
        ----------
        request
            What JSON can hold.

        Returns
        -------
        dict
            The program's answer; or "outcome" alone: "crash", "hang" or "memory", and "detail".
        """
        program = self._program or self._start()
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps(request).encode() + b"\n")
        program.stdin.flush()
        if not answers_within(program, SECONDS):
            self._stop()
            return {"outcome": "hang", "detail": f"no answer after {SECONDS:.0f} s of work"}
        line = program.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        status = program.wait()
        self._program = None
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        self._errors.seek(0)
        told = self._errors.read().decode(errors="replace")
        return {"outcome": "crash", "detail": f"{name}\n{told[-4000:]}"}

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors.truncate(0)
        self._program = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # Tests before this one may have left folders of programs on the path, and a module there hides a folder of
            # the same name here, wherever it stands on the path.
            cwd=_TESTS,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([_TESTS, os.path.dirname(_TESTS)])},
        )
        assert self._program.stdout is not None
        if self._program.stdout.readline() != b"ready\n":
            self._program.wait()
            self._errors.seek(0)
            raise RuntimeError(f"{self._module} did not start: {self._errors.read().decode()}")
        return self._program

    def _stop(self) -> None:
        if self._program is not None:
            self._program.kill()
            self._program.wait()
            for pipe in (self._program.stdin, self._program.stdout):
                if pipe is not None:
                    pipe.close()
            self._program = None

    def __enter__(self) -> Trials:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._errors.close()


def serve(trial: Callable[[Any], dict[str, Any]]) -> None:
    """Run the trials that standard input asks for, one a line, and answer them on standard output."""
    if not sanitizers.ARE_ON:  # what they remember of trials grows, and has limits of its own
        limit = _memory("VmSize") + ADDRESS_SPACE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print("ready", flush=True)
    for line in sys.stdin:
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")  # the peak is from now on
        before = _memory("VmHWM")
        answer = trial(json.loads(line))
        swollen = _memory("VmHWM") - before
        if swollen > RESIDENT_BYTES:
            answer = {"outcome": "memory", "detail": f"{swollen:,} bytes more; {answer}"}
        print(json.dumps(answer), flush=True)


def _memory(of: str) -> int:
    with open("/proc/self/status") as status:
        (found,) = (line.split() for line in status if line.startswith(f"{of}:"))
    return int(found[1]) << 10
