"""The table of Flink's classes and ours names what exists, and what jobs reach."""

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from models.timestamped_source import TimestampedSource

from flinkcore.common import Configuration, Duration, Watermark, WatermarkStrategy
from flinkcore.datastream import (
    ParallelSourceFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkcore.datastream.connectors import NumberSequenceSource
from flinkcore.datastream.functions import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    PacedSourceContext,
)
from flinkcore.datastream.timestamps import (
    AscendingTimestampExtractor,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    IngestionTimeExtractor,
)

TABLE = Path(__file__).parents[2] / "flinkcore" / "runtime" / "README.md"
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in TABLE.read_text().splitlines()
    if line.startswith("| ")
][1:]
PARTS = [part.strip() for row in ROWS for part in row[1].split(";") if part.strip()]
JOBS = {"element jobs", "replays", "all", "harnesses", "none"}


def test_the_table_has_rows() -> None:
    assert len(PARTS) > 40


@pytest.mark.parametrize("part", PARTS)
def test_a_row_names_what_exists(part: str) -> None:
    module, *names = re.findall(r"`([\w.]+)`", part)
    assert names
    for name in names:
        assert hasattr(importlib.import_module(f"flinkcore.{module}"), name), name


@pytest.mark.parametrize("row", [row for row in ROWS if not row[0].startswith("**")], ids=lambda row: row[0])
def test_a_row_says_which_jobs_reach_it(row: list[str]) -> None:
    assert row[3] in JOBS


# ---- what element jobs reach of sources and time ----


def rows_of(*sections: str) -> Iterator[list[str]]:
    section = ""
    for row in ROWS:
        if row[0].startswith("**"):
            section = row[0].strip("*")
        elif section in sections or (section == "Assigners and generators" and "(1.20)" in row[0]):
            yield row


def classes_of(row: list[str]) -> Iterator[type]:
    """The classes of a row that are made: no enumerations, protocols or functions."""
    for part in row[1].split(";"):
        module, *names = re.findall(r"`([\w.]+)`", part)
        for name in names:
            found = getattr(importlib.import_module(f"flinkcore.{module}"), name)
            is_made = isinstance(found, type) and not hasattr(found, "__members__")
            if is_made and not getattr(found, "_is_protocol", False):
                yield found


REACHED_ROWS = [
    row
    for row in rows_of(
        "Source contexts (1.20)", "Sources with splits", "Processing time", "Elements and dispatch"
    )
    if row[3] == "element jobs"
]


class Emitting(ParallelSourceFunction, CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        assert not context.is_restored()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        assert context.get_checkpoint_id() == 1

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        for at in range(3):
            ctx.collect_with_timestamp(at, at)
            ctx.emit_watermark(Watermark(at))
            ctx.sleep(50)

    def cancel(self) -> None:
        raise AssertionError("it ends by itself")


class Bounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_element_timestamp(self, element: int) -> int:
        return element


class Ascending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element: int) -> int:
        return element


class Punctuated(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value

    def check_and_get_next_watermark(self, last_element: int, extracted_timestamp: int) -> Watermark:
        return Watermark(extracted_timestamp)


def function_jobs(folder: Path) -> None:
    for characteristic in TimeCharacteristic:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_stream_time_characteristic(characteristic)
        stream = env.add_source(Emitting(), idle_timeout=Duration.of_millis(10))
        assert len(list(stream.execute_and_collect())) == 3
        stopped = stream.execute_and_collect(stop_with_checkpoint=folder / characteristic.name)
        assert len(list(stopped)) == 3


def source_jobs() -> None:
    aligned = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", Duration.of_millis(1), Duration.of_millis(1)
    )
    splits = TimestampedSource({"a": [(1, 1), (2, 2)], "b": [(3, 3)]})
    for mode, strategy in (
        (RuntimeExecutionMode.STREAMING, aligned),
        (RuntimeExecutionMode.BATCH, WatermarkStrategy.no_watermarks()),
    ):
        env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_runtime_mode(mode)
        env.get_config().set_latency_tracking_interval(1)
        numbers = env.from_source(NumberSequenceSource(1, 2), strategy, "numbers")
        stream = numbers.union(env.from_source(splits, strategy, "splits"))
        assert sorted(stream.execute_and_collect()) == [1, 1, 2, 2, 3]


def assigner_jobs() -> None:
    for assigner in (Bounded(Duration.of_millis(1)), Ascending(), Punctuated(), IngestionTimeExtractor()):
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_collection([1, 2]).assign_timestamps_and_watermarks(assigner)
        assert list(stream.execute_and_collect()) == [1, 2]


def system_clock_jobs() -> None:
    for chaining in (True, False):
        env = StreamExecutionEnvironment.get_execution_environment().set_clock("system")
        env.get_config().set_chaining_enabled(chaining)
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        stream = env.from_source(NumberSequenceSource(1, 2), strategy, "numbers")
        assert list(stream.execute_and_collect()) == [1, 2]


def with_subclasses(found: type) -> set[type]:
    return {found}.union(*(with_subclasses(derived) for derived in found.__subclasses__()))


def noting(initialise: Callable[..., None], seen: set[type]) -> Callable[..., None]:
    """Return an ``__init__`` that adds the class of the object, and its bases."""

    def initialise_noted(self: Any, *arguments: Any, **settings: Any) -> None:
        seen.update(type(self).__mro__)
        if initialise is not object.__init__:
            initialise(self, *arguments, **settings)

    return initialise_noted


def test_jobs_reach_each_class_of_sources_assigners_clocks_and_metrics(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waited_for = {found for row in REACHED_ROWS for found in classes_of(row)}
    assert len(waited_for) > 30
    seen: set[type] = set()
    initialised = {
        each for found in waited_for for each in with_subclasses(found) if "__init__" in vars(each)
    }
    for found in waited_for - initialised:
        # Who inherits its __init__ is noted by the base, or, if that is object, by an __init__ of its own.
        base = next(each for each in found.__mro__ if "__init__" in vars(each))
        initialised.add(found if base is object else base)
    for each in initialised:
        monkeypatch.setattr(each, "__init__", noting(each.__init__, seen))  # type: ignore[misc]
    function_jobs(tmp_path)
    source_jobs()
    assigner_jobs()
    system_clock_jobs()
    assert {found.__qualname__ for found in waited_for - seen} == set()
