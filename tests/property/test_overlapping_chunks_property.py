"""Any layout of splits over files gives the same events in the same order, within any limits."""

from collections import Counter
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from equipment.example_counts import examples
from equipment.memory_disk import MEMORY
from equipment.small_batches import limit, read_in_batches_of, read_within
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import Row, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment

GIVEN = pa.schema({"row": pa.int64(), "watermark": pa.int64()})


class Pass(KeyedProcessFunction):
    """Gives each event as it comes, and the watermark then."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        yield Row(value.row, ctx.timer_service().current_watermark())


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[list[int]]]:
    """Rows, as (split, arrival) in the order of the log, and the rows of each file."""
    rows = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), min_size=1, max_size=60))
    if draw(st.booleans()):
        rows.sort(key=lambda row: row[1])
    n_files = draw(st.integers(1, 8))
    kind = draw(st.sampled_from(["in a row", "by split", "any"]))
    files: list[list[int]] = [[] for _ in range(n_files)]
    latest = Counter[int]()
    for number, (split, _) in enumerate(rows):
        file = {"in a row": number * n_files // len(rows), "by split": split % n_files}.get(kind)
        if file is None:  # those of a split lie in its order
            file = latest[split] = draw(st.integers(latest[split], n_files - 1))
        files[file].append(number)
    for file in files:  # whole splits may follow each other in a file
        if draw(st.booleans()):
            file.sort(key=lambda number: rows[number][0])
    return rows, files


@settings(max_examples=examples(60), deadline=None)
@given(
    layouts(),
    st.sampled_from([1, 2, 16]),
    st.sampled_from([0, 200, 1_000, 1 << 20]),
    st.sampled_from([1, 3, 100]),
    st.sampled_from([0, 3_000, 1 << 20]),
    st.sampled_from([0, 500, 1 << 20]),
    st.sampled_from([1, 3]),
)
def test_any_layout_gives_the_same_events_in_the_same_order(
    layout: tuple[list[tuple[int, int]], list[list[int]]],
    open_chunks: int,
    held_bytes: int,
    batch_rows: int,
    packed_bytes: int,
    kept_bytes: int,
    parallelism: int,
) -> None:
    rows, files = layout
    with TemporaryDirectory(dir=MEMORY) as folder:
        for number, file in enumerate(files):
            columns = list(zip(*((*rows[row], row) for row in file), strict=True)) or [(), (), ()]
            schema = pa.schema({"split": pa.int64(), "at": pa.int64(), "row": pa.int64()})
            table = pa.table([pa.array(column, pa.int64()) for column in columns], schema=schema)
            pq.write_table(table, f"{folder}/{number}.parquet", row_group_size=7)
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        read_in_batches_of(batch_rows, env)
        read_within(open_chunks, held_bytes, env)
        limit(env, packed_bytes=packed_bytes, kept_bytes=kept_bytes)
        log = env.from_event_log(folder, timestamp="at", arrival="at", split="split")
        events = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        found = (
            events.with_columns(all=pc.scalar(1)).key_by("all").process(Pass(), GIVEN).execute().to_arrow()
        )
    latest: dict[int, int] = {}
    positions = Counter[int]()
    places = []
    for number in (row for file in files for row in file):
        split, arrival = rows[number]
        arrival = latest[split] = max(latest.get(split, arrival), arrival)
        places.append((arrival, split, positions[split], number))
        positions[split] += 1
    assert found["row"].to_pylist() == [number for *_, number in sorted(places)]
    assert found["watermark"].to_pylist() == sorted(found["watermark"].to_pylist())
