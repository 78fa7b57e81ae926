"""Lists of rows of a function over batches, against a list state of a function that is called for each element."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.example_counts import examples

from flinkcore.common import Duration, Types, WatermarkStrategy
from flinkcore.datastream import (
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TimeDomain,
)
from flinkcore.datastream.state import ListStateDescriptor

HELD = pa.schema({"number": pa.int64(), "text": pa.string(), "times": pa.list_(pa.timestamp("ns"))})
GIVEN = pa.schema(
    {
        "user": pa.string(),
        "what": pa.string(),
        "time": pa.int64(),
        "length": pa.int64(),
        "sum": pa.int64(),
        "text": pa.string(),
    }
)
EVENTS = 150


def kept(number: int) -> bool:
    """Whether a processing-time timer leaves a row in its list."""
    return number % 2 == 0


class Batches(KeyedBatchProcessFunction):
    one_element_per_key = True

    def open(self, runtime_context: Any) -> None:
        self.held = runtime_context.get_column_list_state("held", HELD)

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        ids, service = elements.key_ids, ctx.timer_service()
        self.held.add(ids, elements.batch.select(HELD.names))
        service.register_event_time_timers(ids, elements.timestamps + 5)
        service.register_processing_time_timers(ids, elements.processing_times + 7)
        rows = np.flatnonzero(elements["number"].to_numpy() % 5 == 0)[::-1]
        yield elements.results(self._given("ELEMENT", ids[rows], elements.timestamps[rows], ctx), rows)

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        ids, times = timers.key_ids, timers.timestamps
        yield timers.results(self._given(timers.time_domain.name, ids, times, ctx), np.arange(len(ids)))
        if timers.time_domain is TimeDomain.EVENT_TIME:
            self.held.clear(ids[times % 3 == 0])
        else:
            rows, places = self.held.get(ids)
            left = np.flatnonzero(kept(rows["number"].to_numpy()))
            self.held.clear(ids)
            self.held.add(ids[places[left]], rows.take(pa.array(left)))

    def _given(self, what: str, ids: Any, times: Any, ctx: Any) -> dict[str, Any]:
        rows, places = self.held.get(ids)
        sums, texts = np.zeros(len(ids), np.int64), [""] * len(ids)
        ranks = np.arange(len(places)) - np.searchsorted(places, places) + 1
        np.add.at(sums, places, ranks * rows["number"].to_numpy())
        for place, text in zip(places.tolist(), rows["text"].to_pylist(), strict=True):
            texts[place] += text
        return {
            "user": ctx.keys(ids)["user"],
            "what": [what] * len(ids),
            "time": times,
            "length": self.held.lengths(ids),
            "sum": sums,
            "text": texts,
        }


class Elements(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.held = runtime_context.get_list_state(ListStateDescriptor("held", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.held.add((value.number, value.text))
        service = ctx.timer_service()
        service.register_event_time_timer(ctx.timestamp() + 5)
        service.register_processing_time_timer(service.current_processing_time() + 7)
        if value.number % 5 == 0:
            yield self._given("ELEMENT", ctx.timestamp(), ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        domain = ctx.time_domain()
        yield self._given(domain.name, timestamp, ctx)
        if domain is TimeDomain.PROCESSING_TIME:
            self.held.update([row for row in self.held.get() if kept(row[0])])
        elif timestamp % 3 == 0:
            self.held.clear()

    def _given(self, what: str, time: int, ctx: Any) -> dict[str, Any]:
        rows = list(self.held.get())
        total = sum(rank * number for rank, (number, _) in enumerate(rows, 1))
        texts = "".join(text for _, text in rows)
        values = ctx.get_current_key(), what, time, len(rows), total, texts
        return dict(zip(GIVEN.names, values, strict=True))


def log_of(random: np.random.Generator) -> pa.Table:
    at = np.cumsum(random.choice([0, 0, 1, 4], EVENTS))
    times = [[row] if row % 3 else None for row in range(EVENTS)]
    return pa.table(
        {
            "ts": at - random.integers(-3, 20, EVENTS),
            "at": at,
            "user": [f"u{number}" for number in random.integers(0, 6, EVENTS)],
            "number": random.integers(0, 100, EVENTS),
            "text": [f"{row} " for row in range(EVENTS)],
            "times": pa.array(times, HELD.field("times").type),
        }
    )


def by_user(
    function: Any, log: pa.Table, parallelism: int, **checkpoints: Path | None
) -> dict[str, list[tuple[Any, ...]]]:
    env = StreamExecutionEnvironment().set_parallelism(parallelism).set_max_parallelism(16)
    env.get_config().set_auto_watermark_interval(7)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(4))
    stream = env.from_event_log(log, timestamp="ts", arrival="at").assign_timestamps_and_watermarks(strategy)
    rows = stream.key_by("user").process(function, GIVEN).execute(**checkpoints).to_arrow().to_pylist()
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row["user"], []).append(tuple(row.values()))
    return found


@pytest.mark.parametrize("seed", range(examples(3)))
def test_lists_are_those_of_a_function_of_elements_in_parts_too(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    log = log_of(random)
    expected = by_user(Elements(), log.drop(["times"]), 1)
    assert len(expected) == 6
    found: dict[str, list[tuple[Any, ...]]] = {}
    before = None
    bounds = [0, *sorted(random.integers(1, EVENTS, 2).tolist()), EVENTS]
    for part, (begin, end) in enumerate(pairwise(bounds)):
        after = tmp_path / str(part) if part < 2 else None
        rows = by_user(
            Batches(),
            log.slice(begin, end - begin),
            int(random.integers(1, 5)),
            restore_from=before,
            stop_with_checkpoint=after,
        )
        for user, of_user in rows.items():
            found.setdefault(user, []).extend(of_user)
        before = after
    assert found == expected
