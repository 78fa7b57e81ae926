"""A process that restores checkpoints, one after the other, within limits of memory and time.

It reads lines of JSON, each with the name of a job and the path of a checkpoint, and answers each with a line: the rows
of the restored job, or the error. What ends the process is seen by the one that gave it the line.
"""

import json
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from models.process_limits import answers_within
from models.resumed_jobs import ONE_LOG, TWO_LOGS, entries_of, tables_of

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import FlinkcoreError

JOBS = {job.__name__: job for job in (*ONE_LOG, *TWO_LOGS)}
ADDRESS_SPACE = 6 << 30
SWELLS_BY = 400 << 10
"""KiB that a trial may add to the memory of its process."""

_ENTRIES = [
    (user, stride, late, split, actions, number % 2)
    for number, (user, stride, late, split, actions) in enumerate(
        [
            ("a", 2, 0, 0, "event:40 processing:60"),
            ("b", 5, 4, 1, "event:9 event:40"),
            ("c", 1, 0, 2, "processing:300"),
            ("ä", 30, 1, 0, "event:60"),
            ("a", 1, 0, 1, "event:3 delete:1"),
            ("b", 0, 0, 2, "event:40 event:60 processing:10"),
            ("c", 2, 20, 0, ""),
            ("user-5", 1, 0, 1, "event:40 forget:60"),
            ("a", 0, 0, 2, "processing:60"),
            ("b", 1, 1, 0, "event:9"),
        ]
        * 3
    )
]


def run_job(name: str, half: int, **checkpoints: Any) -> dict[str, Any]:
    """The rows of one half of a job's logs, by output; its order is by key."""
    logs = 2 if JOBS[name] in TWO_LOGS else 1
    entries = entries_of(_ENTRIES, logs, True)
    middle = 2 * len(entries) // 3
    env = StreamExecutionEnvironment().set_parallelism(2)
    env.get_config().set_auto_watermark_interval(5)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(15))
    streams = [
        env.from_event_log(
            table, timestamp="ts", arrival="at", split="split"
        ).assign_timestamps_and_watermarks(strategy)
        for table in tables_of(entries[middle:] if half else entries[:middle], logs)
    ]
    result = JOBS[name](streams).execute(**checkpoints)
    tags = result._plan.side_outputs()  # type: ignore[attr-defined]
    tables = {"": result.to_arrow()} | {tag.tag_id: result.get_side_output(tag).to_arrow() for tag in tags}
    return {
        tag: sorted(json.dumps(row, default=str) for row in table.to_pylist())
        for tag, table in tables.items()
    }


def answer(line: str) -> dict[str, Any]:
    trial = json.loads(line)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        told: dict[str, Any] = {"rows": run_job(trial["job"], 1, restore_from=Path(trial["path"]))}
    except FlinkcoreError as error:
        told = {"error": type(error).__name__, "message": str(error)}
    except Exception as error:  # what is raw is the finding
        told = {"raw": f"{type(error).__name__}: {error}"}
    return told | {"grown_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for line in sys.stdin:
        print(json.dumps(answer(line)), flush=True)


class Restorer:
    """The process, as its parent sees it; it is started again when it has ended."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self.outcomes: dict[str, int] = defaultdict(int)

    def restore(self, job: str, path: Path) -> dict[str, Any]:
        """What the process answers; an AssertionError if it ends, hangs, swells, or raises what no user can act on."""
        if self._process is None or self._process.poll() is not None:
            tests = Path(__file__).parents[1]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "models.checkpoint_trials"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=tests,
                env={"PYTHONPATH": f"{tests}:{tests.parent}", "PATH": "", "PYTHONWARNINGS": "ignore"},
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"job": job, "path": str(path)}) + "\n")
        process.stdin.flush()
        if not answers_within(process, self._seconds):
            process.kill()
        line = process.stdout.readline()
        assert line, f"the process ended with {process.wait()}, after {self._seconds} s of work at most"
        told: dict[str, Any] = json.loads(line)
        assert "raw" not in told, told["raw"]
        assert told["grown_kib"] < SWELLS_BY, f"{told['grown_kib']} KiB more"
        return told

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()


if __name__ == "__main__":
    main()
