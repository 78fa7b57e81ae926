"""Jobs whose checkpoints are damaged or forged in trials."""

import json
from typing import Any

from models.resumed_jobs import ONE_LOG, TWO_LOGS, entries_of, not_amid_an_arrival, tables_of

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment

JOBS = {job.__name__: job for job in (*ONE_LOG, *TWO_LOGS)}

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
    middle = not_amid_an_arrival(entries, 2 * len(entries) // 3)
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
