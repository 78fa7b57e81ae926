"""Jobs whose checkpoints are damaged or forged in trials."""

import json
from typing import Any

from jobs.element_steps import STEPS
from jobs.resumed_jobs import (
    ONE_LOG,
    TWO_LOGS,
    entries_of,
    not_amid_an_arrival,
    tables_of,
    windows_alone,
)
from jobs.stopped_jobs import STOPPED_JOBS, run_stopped
from jobs.timed_elements import STRATEGY

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment

ALIGNED = "windows_of_aligned_splits"
"""A job whose checkpoint has events that wait for paused splits."""

JOBS = {job.__name__: job for job in (*ONE_LOG, *TWO_LOGS)} | {ALIGNED: windows_alone}

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


ELEMENT_JOBS = {
    "elements_timers": ["timers"],
    "elements_windows": ["windows", "sums"],
    "elements_joined": ["joined", "sessions"],
}
"""Steps over single elements, by the names of jobs."""

OF_LOGS = {"elements_windows"}

ALL_JOBS = sorted(JOBS | ELEMENT_JOBS | STOPPED_JOBS)


def entries_of_trials(logs: int) -> list[tuple[int, tuple[Any, ...]]]:
    """The rows of so many logs, in total order."""
    return entries_of(_ENTRIES, logs, True)


def run_job(name: str, half: int, **checkpoints: Any) -> dict[str, Any]:
    """The rows of one half of a job's logs, by output; its order is by key."""
    if name in STOPPED_JOBS:
        return run_stopped(name, half, **checkpoints)
    if name in ELEMENT_JOBS:
        return _run_elements(name, half, **checkpoints)
    logs = 2 if JOBS[name] in TWO_LOGS else 1
    entries = entries_of_trials(logs)
    middle = not_amid_an_arrival(entries, 2 * len(entries) // 3)
    env = StreamExecutionEnvironment().set_parallelism(2)
    env.get_config().set_auto_watermark_interval(5)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(15))
    if name == ALIGNED:
        strategy = strategy.with_watermark_alignment("splits", Duration.of_millis(0), Duration.of_millis(5))
    streams = [
        env.from_event_log(
            table, timestamp="ts", integer_times=True, arrival="at", split="split"
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


def _run_elements(name: str, half: int, **checkpoints: Any) -> dict[str, Any]:
    """The elements that one half of a collection, or of a log, leads to."""
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(5)
    part = slice(20, 40) if half else slice(0, 20)
    if name in OF_LOGS:
        entries = [(0, ("abc"[n % 3], n, 3 * n, 3 * n + 1, n % 2, "")) for n in range(40)]
        log = env.from_event_log(
            tables_of(entries[part], 1)[0], timestamp="ts", integer_times=True, arrival="at", split="split"
        )
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(15))
        timed = log.assign_timestamps_and_watermarks(strategy.with_idleness(Duration.of_millis(50)))
        stream = timed.map(lambda row: (row.ts, row.user, row.number % 9))
    else:
        elements = [(number * 7 % 90, "abc"[number % 3], number % 9) for number in range(40)]
        stream = env.from_collection(elements[part]).assign_timestamps_and_watermarks(STRATEGY)
    for step in ELEMENT_JOBS[name]:
        stream = STEPS[step](stream)
    return {"": sorted(map(repr, stream.execute_and_collect(**checkpoints)))}
