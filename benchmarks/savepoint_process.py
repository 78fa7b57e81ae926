"""Count events of keys in windows of an hour from a history that is made here, and stop with a savepoint.

Arguments: number of keys, each of which has one event, and a new directory. Does what `SavepointOfWindows.java` does.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

import flinkcore as fc
from benchmarks.job_plans import planned
from flinkcore.common import Types
from flinkcore.savepoints import FlinkOperator, FlinkWindow, SavepointTarget


def main() -> None:
    """Run the job of the command line."""
    n_keys, folder = int(sys.argv[1]), sys.argv[2]
    numbers = np.arange(n_keys)
    log = pa.table({"key": numbers * 7919, "time": numbers % 1000})
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_max_parallelism(128)
    env.set_parallelism(1)
    events = env.from_event_log(log, timestamp="time").assign_timestamps_and_watermarks(
        fc.WatermarkStrategy.for_monotonous_timestamps()
    )
    windows = events.key_by("key").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_hours(1)))
    operator = FlinkOperator("counts", key=Types.LONG(), window=FlinkWindow(Types.LONG(), fields=["n"]))
    counts = planned(lambda: windows.aggregate(n=fc.count()))()
    print(counts.execute(stop_with_savepoint=SavepointTarget(folder, [operator])).report)


if __name__ == "__main__":
    main()
