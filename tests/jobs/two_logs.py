"""Two random logs, as streams of a job and as the models take them."""

from typing import Any

from equipment.small_batches import read_in_batches_of
from jobs.scripted_logs import Watermarks, elements_of, events_of, strategy_of, table_of
from jobs.two_inputs import replay_models
from models.watermarks import ReplayModel

from flinkcore.common import Row
from flinkcore.datastream import DataStream, StreamExecutionEnvironment

Rows = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]


class TwoLogs:
    """Two logs, as streams of a job and as the models take them."""

    def __init__(
        self,
        rows: Rows,
        bounds: tuple[Watermarks, Watermarks],
        idlenesses: tuple[int | None, int | None],
        interval: int,
        parallelism: int,
        batch_rows: int = 3,
    ) -> None:
        second = table_of(rows[1], 3).rename_columns(["who", "number", "ts", "at", "split", "actions"])
        self.tables = [table_of(rows[0], 3), second]
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        env.get_config().set_auto_watermark_interval(interval)
        read_in_batches_of(batch_rows, env)
        self.streams: list[DataStream] = [
            env.from_event_log(
                table, timestamp="ts", integer_times=True, arrival="at", split="split"
            ).assign_timestamps_and_watermarks(strategy_of(bound, idleness))
            for table, bound, idleness in zip(self.tables, bounds, idlenesses, strict=True)
        ]
        self.bounds, self.idlenesses, self.interval = bounds, idlenesses, interval

    def models(self) -> list[ReplayModel]:
        events = [events_of(table) for table in self.tables]
        return replay_models(events, self.bounds, self.idlenesses, self.interval)

    def rows(self) -> list[list[Row]]:
        return [elements_of(table) for table in self.tables]
