"""A function over batches that does what a test says, and a small log for it."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flinkcore.common import Duration, OutputTag, WatermarkStrategy
from flinkcore.datastream import KeyedBatchProcessFunction, StreamExecutionEnvironment, TimeDomain

SIDE = OutputTag("side", pa.schema({"n": pa.int64()}))
NUMBERS = pa.schema({"n": pa.int64()})
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))


def table(*rows: tuple[Any, ...], names: str = "ts at key value") -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=names.split())


LOG = table((1, 11, "a", 1), (12, 12, "b", 2), (25, 25, "a", 3), (40, 41, "b", 4), (60, 60, "a", 5))


def keyed(log: pa.Table = LOG, *keys: str, parallelism: int = 1, interval: int = 10) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    stream = env.from_event_log(log, timestamp="ts", integer_times=True, arrival="at")
    return stream.assign_timestamps_and_watermarks(STRATEGY).key_by(*(keys or ("key",)))


class Calls(KeyedBatchProcessFunction):
    """Does at batches what a test says, and remembers them."""

    seen: list[Any]  # of the class, as replays work on copies

    def __init__(
        self,
        at_elements: Callable[[Any, Any], Any],
        at_timers: Callable[[Any, Any], Any] | None = None,
        **declared: Any,
    ) -> None:
        self.at_elements = at_elements
        self.at_timers = at_timers
        for name, value in declared.items():
            setattr(self, name, value)
        type(self).seen = []

    def process_batch(self, elements: Any, ctx: Any) -> Any:
        self.seen.append(("elements", elements["value"].to_pylist()))
        return self.at_elements(elements, ctx)

    def on_timers(self, timers: Any, ctx: Any) -> Any:
        keys = timers.keys["key"].to_pylist()
        times = timers.timestamps.tolist(), timers.watermarks.tolist(), timers.processing_times.tolist()
        domain = "event" if timers.time_domain is TimeDomain.EVENT_TIME else "processing"
        self.seen += [(domain, *timer) for timer in zip(keys, *times, strict=True)]
        return None if self.at_timers is None else self.at_timers(timers, ctx)


def nothing(subject: Any, ctx: Any) -> None:
    pass


def run(function: Calls, log: pa.Table = LOG, **settings: Any) -> list[Any]:
    keyed(log, **settings).process(function, NUMBERS).to_arrow()
    return function.seen


def given(body: Callable[[Any, Any], Any], output_type: pa.Schema = NUMBERS, **declared: Any) -> pa.Table:
    return keyed().process(Calls(body, **declared), output_type).to_arrow()
