"""A program over elements as users write and type them; mypy reads it, nobody runs it."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import assert_type

from flinkcore.common import (
    Duration,
    JobExecutionResult,
    OutputTag,
    Row,
    Types,
    Watermark,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    BroadcastStream,
    CloseableIterator,
    ConnectedStreams,
    DataStream,
    DataStreamSink,
    KeyedStream,
    MapFunction,
    ProcessFunction,
    RuntimeContext,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.connectors import (
    InputStatus,
    NumberSequenceSource,
    ReaderOutput,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from flinkcore.datastream.state import MapStateDescriptor

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
LONG_WORDS = OutputTag("long", Types.STRING())
RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Counted(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.counter = runtime_context.get_metrics_group().counter("words")

    def map(self, value: Any) -> tuple[str, int]:
        self.counter.inc()
        return value, 1


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield (LONG_WORDS, value) if len(value) > 10 else value


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
words = env.from_collection(["to", "be"], Types.STRING())
assert_type(words, DataStream)
pairs = words.map(Counted(), PAIR).name("count").uid("count").set_parallelism(1)
assert_type(pairs, DataStream)
assert_type(pairs.key_by(lambda pair: pair[0], Types.STRING()), KeyedStream)
assert_type(pairs.key_by(key_selector=lambda pair: pair[0]).reduce(lambda a, b: a), DataStream)
assert_type(words.filter(lambda word: len(word) > 2).rebalance(), DataStream)
assert_type(words.process(Split()).get_side_output(LONG_WORDS), DataStream)
assert_type(words.process(Split()).get_side_output(LONG_WORDS).map(str.upper), DataStream)
assert_type(words.broadcast(), DataStream)
assert_type(words.broadcast(RULES), BroadcastStream[DataStream])
assert_type(words.connect(pairs), ConnectedStreams)
assert_type(words.print(), DataStreamSink)
assert_type(words.execute_and_collect(), CloseableIterator)
assert_type(words.execute_and_collect(limit=3), list[Any])
assert_type(env.execute("words"), JobExecutionResult)
env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
env.from_collection([Row(user="ada")], Types.ROW_NAMED(["user"], [Types.STRING()])).key_by("user").sum("user")


class Ticks(SourceFunction):
    running = True

    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        with ctx.get_checkpoint_lock():
            ctx.collect_with_timestamp(1, 2)
        ctx.emit_watermark(Watermark(2))
        ctx.sleep(10)
        ctx.collect("3")  # type: ignore[arg-type]

    def cancel(self) -> None:
        self.running = False


class LineReader(SourceReader[str, SourceSplit]):
    def start(self) -> None: ...

    def poll_next(self, output: ReaderOutput[str]) -> InputStatus:
        output.create_output_for_split("a").collect("line", 5)
        output.collect(5)  # type: ignore[arg-type]
        return InputStatus.END_OF_INPUT

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return []

    def add_splits(self, splits: Sequence[SourceSplit]) -> None: ...

    def notify_no_more_splits(self) -> None: ...

    def close(self) -> None: ...


class Lines(Source):
    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return []

    def create_reader(self, context: SourceReaderContext) -> LineReader:
        assert_type(context.current_processing_time(), int)
        return LineReader()


assert_type(env.add_source(Ticks(), "ticks", Types.INT(), idle_timeout=Duration.of_seconds(1)), DataStream)
assert_type(env.from_source(Lines(), WatermarkStrategy.no_watermarks(), "lines"), DataStream)
env.add_source(Lines())  # type: ignore[arg-type]

words.map(5)  # type: ignore[arg-type]
words.map(str, "text")  # type: ignore[arg-type]
words.execute_and_collect(limit="3")  # type: ignore[call-overload]
# Single elements have none of the steps over columns, nor of the calls that run those.
pairs.select("f0")  # type: ignore[attr-defined]
pairs.to_arrow()  # type: ignore[attr-defined]
pairs.lateness()  # type: ignore[attr-defined]
pairs.key_by("f0").count_window(2).retracting()  # type: ignore[attr-defined]
pairs.union(env.from_event_log("log.csv", timestamp="ts"))  # type: ignore[arg-type]
