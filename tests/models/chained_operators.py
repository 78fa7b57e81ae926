"""Two keyed operators, one behind the other, element by element and millisecond by millisecond."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from equipment.recorders import OutputRecorder
from models.process_replay import Emitted, emitted_of, happenings
from models.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP, ReplayModel

from flinkcore.common import OutputTag, Row, Watermark
from flinkcore.datastream import KeyedCoProcessFunction, KeyedProcessFunction
from flinkcore.datastream.functions import ProcessWindowFunction
from flinkcore.datastream.state import ListStateDescriptor
from flinkcore.datastream.window import TimeWindow, WindowOperation
from flinkcore.operators.keys.java_keys import JavaKeys
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.process_operators import KeyedProcessOperator
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.operators.windowing import make_window_operator

TOLD = pa.schema(
    {
        "key": pa.string(),
        "what": pa.string(),
        "number": pa.int64(),
        "watermark": pa.int64(),
        "clock": pa.int64(),
        "timestamp": pa.int64(),
        "seen": pa.list_(pa.int64()),
    }
)
"""What a `Follower` gives."""


class Follower(KeyedProcessFunction):
    """Tells what it sees of another operator's results, with timers of both kinds."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        self.seen.add(value.number)
        yield self._told("result", value.number, ctx)
        if value.number % 3 == 0 and ctx.timestamp() != MIN_TIMESTAMP:
            timers.register_event_time_timer(ctx.timestamp() + value.number % 5)
        if value.number % 3 == 1:
            timers.register_processing_time_timer(timers.current_processing_time() + value.number % 7)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield self._told(ctx.time_domain().name, timestamp, ctx)

    def _told(self, what: str, number: int, ctx: Any) -> tuple[Any, ...]:
        timers = ctx.timer_service()
        times = timers.current_watermark(), timers.current_processing_time(), ctx.timestamp()
        return ctx.get_current_key(), what, number, *times, list(self.seen.get() or ())


class Followers(KeyedCoProcessFunction):
    """Does for either stream what `Follower` does."""

    open = Follower.open
    process_element1 = Follower.process_element
    process_element2 = Follower.process_element
    on_timer = Follower.on_timer
    _told = Follower._told


class Counts(ProcessWindowFunction):
    """Gives key, start and end, which windows of counts have not, and number of the elements of a window."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        window = context.window()
        bounds = (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)
        return [(key, *bounds, len(list(elements)))]


def keyed_operator(
    function: KeyedProcessFunction | WindowOperation, key_of: Callable[[Row], Any], output: Any
) -> tuple[Any, DrivenProcessingTimeService]:
    clock = DrivenProcessingTimeService()
    backend = KeyedStateBackend(KeyContext(128), clock)
    operator: Any
    if isinstance(function, WindowOperation):
        operator = make_window_operator(function, key_of, output, backend, clock)
    else:
        operator = KeyedProcessOperator(function, key_of, output, backend, clock)
    operator.open(StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(backend)))
    return operator, clock


class Link:
    """Hands results on; those of several timers in order of their times, then by key group.

    Results are tuples that begin with their key; those of windows go on with the window's start.
    """

    def __init__(self, following: Any, row_of: Callable[[Any], Row | None], of_windows: bool) -> None:
        self.of_windows = of_windows
        self.following = following
        self.row_of = row_of
        self.side = OutputRecorder()
        self.held: list[StreamRecord[Any]] = []
        self.key_group = JavaKeys(128)

    def collect(self, record: StreamRecord[Any]) -> None:
        self.held.append(record)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        self.side.collect_side(output_tag, record)

    def emit_watermark(self, watermark: Watermark) -> None:
        self.pass_on(by_timers=True)
        self.following.process_watermark(watermark)

    def pass_on(self, *, by_timers: bool) -> None:
        held, self.held = self.held, []
        if by_timers:
            latest: dict[int, int] = {}
            order = []
            for record in held:
                group = self.key_group(record.value[0])
                fired = MIN_TIMESTAMP if record.timestamp is None else record.timestamp
                latest[group] = max(latest.get(group, fired), fired)
                window = (record.value[1], record.value[0]) if self.of_windows else ()
                order.append((latest[group], group, *window))
            held = [held[at] for at in sorted(range(len(held)), key=lambda at: order[at])]
        for record in held:
            row = self.row_of(record.value)
            if row is not None:
                self.following.process_element(StreamRecord(row, record.timestamp))


def chained_run(
    first: KeyedProcessFunction | WindowOperation,
    second: KeyedProcessFunction,
    keys: tuple[Callable[[Row], Any], Callable[[Row], Any]],
    row_of: Callable[[Any], Row | None],
    model: ReplayModel,
    rows: list[Row],
) -> tuple[list[Emitted], list[Emitted]]:
    """What the second operator emits, and what the first one gives to side outputs."""
    output = OutputRecorder()
    follower, later_clock = keyed_operator(second, keys[1], output)
    link = Link(follower, row_of, isinstance(first, WindowOperation))
    leader, clock = keyed_operator(first, keys[0], link)
    now = None
    for what, time, value in happenings(model, rows):
        if now is not None and time > now:
            later_clock.advance_to(now)
        now = clock.now_ms = later_clock.now_ms = time
        if what == "element":
            leader.process_element(StreamRecord(*value))
            link.pass_on(by_timers=False)
        elif what == "due":
            clock.advance_to(time)
            link.pass_on(by_timers=True)
        elif what == "end":
            leader_is_at_end(later_clock, leader, link, value)
        else:
            leader.process_watermark(Watermark(value))
    return emitted_of(output), emitted_of(link.side)


def leader_is_at_end(
    later_clock: DrivenProcessingTimeService, leader: Any, link: Link, watermark: int
) -> None:
    """The end comes to the first operator, whose results come to the second before timers of its last moment."""
    follower = link.following

    class Held:
        def process_element(self, record: StreamRecord[Any]) -> None:
            follower.process_element(record)

        def process_watermark(self, mark: Watermark) -> None:
            later_clock.advance_to(later_clock.now_ms)
            follower.process_watermark(mark)

    link.following = Held()
    leader.process_watermark(Watermark(watermark))


class Leader:
    """An operator over a log, whose results come to another one.

    Parameters
    ----------
    function : KeyedProcessFunction or WindowOperation
    key_of : callable
        Of a row of the log.
    row_of : callable
        From a result to the row that comes to the other operator; None: to none.
    """

    def __init__(
        self,
        function: KeyedProcessFunction | WindowOperation,
        key_of: Callable[[Row], Any],
        row_of: Callable[[Any], Row | None],
    ) -> None:
        self._given: list[StreamRecord[Any]] = []
        self._link = Link(self, row_of, isinstance(function, WindowOperation))
        self._operator, self.clock = keyed_operator(function, key_of, self._link)

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Take a row for the other operator."""
        self._given.append(record)

    def process_watermark(self, watermark: Watermark) -> None:
        """Leave it out: the other operator gets it from who calls this."""

    def results(self, what: str, value: Any) -> list[tuple[Row, int | None]]:
        """What it gives for something that happens to it."""
        if what == "element":
            self._operator.process_element(StreamRecord(*value))
            self._link.pass_on(by_timers=False)
        elif what == "due":
            self.clock.advance_to(self.clock.now_ms)
            self._link.pass_on(by_timers=True)
        else:
            self._operator.process_watermark(Watermark(value))
        given = [(record.value, record.timestamp) for record in self._given]
        self._given.clear()
        return given


def happenings_behind(
    leaders: list[Leader | None], happened: Iterable[tuple[str, int, int, Any]]
) -> Iterator[tuple[str, int, int, Any]]:
    """What happens to an operator with two inputs; None: that is the log itself.

    What leaders give at a time comes before the processing-time timers of that time.
    """
    now = None
    for what, time, log, value in happened:
        if now is not None and time > now:
            yield "due", now, 0, None
        now = time
        for number, leader in enumerate(leaders):
            if leader is None:
                if what == "element" and log == number:
                    yield what, time, log, value
                continue
            leader.clock.now_ms = time
            if what in ("due", "end") or (log == number and what in ("element", "watermark")):
                caused = leader.results(what, MAX_TIMESTAMP if what == "end" else value)
                for result in caused:
                    yield "element", time, number, result
        if what == "end":
            yield "due", time, 0, None
        if what not in ("element", "due"):
            yield what, time, log, value
