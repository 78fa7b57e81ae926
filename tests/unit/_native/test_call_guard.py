"""Native objects that two threads use at once: one of them is told so, and nothing is corrupted."""

import importlib
import inspect
import pkgutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.timelines import packed_steps
from equipment.timer_batches import timer_batch

import flinkcore._native
from flinkcore._native.accumulator_state import (
    accumulator_parts,
    restore_accumulator_parts,
    touched_entries,
)
from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import CheckedStream, ColumnArray, RecordBatch
from flinkcore._native.changing_join import ChangingJoinKernel
from flinkcore._native.changing_top import ChangingTopKernel
from flinkcore._native.deduplication import DeduplicationKernel
from flinkcore._native.frames import Frames
from flinkcore._native.interval_join import interval_join
from flinkcore._native.join_kernel import JoinKernel
from flinkcore._native.json_lines import JsonKeys
from flinkcore._native.kept_values import KeptValues
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_expiry import KeyExpiry
from flinkcore._native.key_lists import KeyLists
from flinkcore._native.key_timers import BatchCuts, KeyTimers
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.lateness import LatenessCounter
from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.pattern_matching import PatternMatcher
from flinkcore._native.pending_rows import PendingRows
from flinkcore._native.text_parts import TextParts
from flinkcore._native.time_summary import TimeSummary
from flinkcore._native.time_windows import time_windows
from flinkcore._native.timeline import SplitMerge, SplitRecords, restore_split_merge, split_merge_state
from flinkcore._native.timers import CurrentKey, CurrentKeyTimers, TimerHeap
from flinkcore._native.top_rows import TopKernel
from flinkcore._native.valve import StatusWatermarkValve
from flinkcore._native.watermark_generator import RowtimeWatermarkGenerator
from flinkcore._native.window_operator import WindowOperator
from flinkcore.errors import DataError

ROWS = 200_000
NUMBERS = np.arange(ROWS, dtype=np.int64)
ENTRIES = np.arange(ROWS, dtype=np.uint32)
GROUPS = np.zeros(ROWS, np.int32)
EVENTS = (NUMBERS.astype(np.uint32), GROUPS, None, NUMBERS, NUMBERS, np.zeros(ROWS, np.int64))
WORDS = NUMBERS.astype(np.uint64).reshape(-1, 1)
IDENTITIES = np.stack([NUMBERS, NUMBERS], axis=1).astype(np.uint64)
NO_STATE = pa.record_batch({"timestamp": np.empty(0, np.int64), "end": np.empty(0, np.int64)})
LATER_TIMERS = timer_batch(NUMBERS + 1, NUMBERS, GROUPS)
BATCH = pa.record_batch({"key": pa.array(NUMBERS), "text": pa.array(NUMBERS).cast(pa.string())})
FEW = BATCH.slice(0, 10)
LINES = b'{"a": 1, "b": [1, 2, 3]}\n' * ROWS


class CallsBack:
    """Arrow data whose export calls somebody else first, amid a method that has taken it."""

    def __init__(self, batch: pa.RecordBatch, call: Callable[[], object]) -> None:
        self._batch = batch
        self._call = call

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        self._call()
        return self._batch.__arrow_c_array__(requested_schema)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Shared:
    """How an object of a native class is used by two threads.

    Attributes
    ----------
    make
        A new object.
    long
        A call that is without the GIL for long.
    calls
        What else can be called, by the name of the method, or a name of one's own.
    numbers
        Names of what only reads one number of the object, and may be asked for at any time.
    """

    make: Callable[[], Any]
    long: Callable[[Any], object]
    calls: dict[str, Callable[[Any], object]]
    numbers: set[str] = field(default_factory=set)


def _accumulators() -> Accumulators:
    accumulators = Accumulators(BATCH.schema, [("sum", "key", None), ("collect", "text", None)])
    accumulators.reserve(ROWS)
    return accumulators


def _dictionary() -> KeyDictionary:
    return KeyDictionary(BATCH.schema, ["text"])


def _heap() -> TimerHeap:
    heap = TimerHeap()
    heap.register(timer_batch(NUMBERS, NUMBERS, GROUPS))
    return heap


def _deduplication() -> DeduplicationKernel:
    return DeduplicationKernel(
        TimerHeap(),
        packed_steps([], []),
        steps_done=0,
        result_limit=1 << 30,
        keeps_last=True,
        by_time=True,
        changes=True,
    )


def _top() -> TopKernel:
    return TopKernel(
        TimerHeap(),
        packed_steps([], []),
        steps_done=0,
        result_limit=1 << 30,
        n=3,
        skip=0,
        rank="row_number",
        n_words=1,
        has_tails=False,
        latest_first=False,
        ranks_shown=True,
        changes=True,
        of_windows=False,
    )


def _join() -> JoinKernel:
    return JoinKernel(
        interval_join(0, 1),
        TimerHeap(),
        packed_steps([], []),
        how="left",
        has_condition=False,
        has_kinds=False,
        steps_done=0,
        result_limit=1 << 30,
    )


def _join_all(kernel: JoinKernel) -> object:
    ids, groups, _, *numbers = EVENTS
    return kernel.process(ids, groups, np.zeros(ROWS, np.int8), *numbers)


def _changing_join() -> ChangingJoinKernel:
    return ChangingJoinKernel(
        _dictionary(),
        packed_steps([], []),
        how="full",
        has_condition=False,
        has_kinds=True,
        replaces=(False, False),
        steps_done=0,
        result_limit=1 << 30,
    )


def _join_changes(kernel: ChangingJoinKernel) -> object:
    ids, groups, _, *numbers = EVENTS
    return kernel.process(ids, groups, np.zeros(ROWS, np.int8), *numbers, None, None, IDENTITIES)


def _changing_top() -> ChangingTopKernel:
    return ChangingTopKernel(
        _dictionary(),
        packed_steps([], []),
        steps_done=0,
        result_limit=1 << 30,
        n=3,
        skip=0,
        rank="row_number",
        n_words=1,
        has_tails=False,
        ranks_shown=True,
        changes=True,
        replaces=False,
    )


def _kept_values() -> KeptValues:
    kept = KeptValues("all")
    _keep_all(kept)
    return kept


def _keep_all(kept: KeptValues) -> None:
    kept.process(ENTRIES, NUMBERS, IDENTITIES, None, True)


def _rowtimes() -> RowtimeWatermarkGenerator:
    return RowtimeWatermarkGenerator(0, 0, 0, 1, 1, 2)


def _key_lists() -> KeyLists:
    lists = KeyLists()
    lists.grow(ROWS)
    lists.add(NUMBERS)
    return lists


def _key_timers() -> KeyTimers:
    timers = KeyTimers()
    timers.grow(ROWS)
    timers.register(NUMBERS, NUMBERS)
    return timers


def _cuts() -> BatchCuts:
    cuts = BatchCuts(KeyTimers(), KeyTimers())
    cuts.grow(ROWS)
    return cuts


def _operator() -> WindowOperator:
    accumulators = Accumulators(BATCH.schema, [("count", None, None)])
    return WindowOperator(
        time_windows(size=1_000, slide=500, offset=0, allowed_lateness=0),
        keys=KeyEncoder(BATCH.schema, ["text"]),
        accumulators=accumulators,
        key_names=["text"],
        aggregate_names=["n"],
        timeline=packed_steps([], []),
        row_limit=1_000,
        byte_limit=1 << 20,
    )


def _encoded() -> KeyEncoder:
    encoder = KeyEncoder(BATCH.schema, ["text"])
    encoder.encode_batch(BATCH)
    return encoder


COLUMNS, ENCODED = RecordBatch(BATCH), _encoded()
NO_NUMBERS, NO_FLAGS = np.empty(0, np.int64), np.empty(0, np.uint8)


def _process(operator: WindowOperator) -> object:
    return operator.process(COLUMNS, ENCODED, None, NUMBERS, np.zeros(ROWS, np.int64))


def _add_parts(records: SplitRecords, n: int) -> None:
    summary = TimeSummary(interval_ms=1, idleness_ms=None, steps=True)
    summary.reserve(1)
    times = np.arange(n, dtype=np.int64)
    summary.update(np.zeros(1, np.int32), np.array([0, n]), times, times)
    records.add_parts(*summary.take())


def _records() -> SplitRecords:
    records = SplitRecords(splits=1, interval_ms=1)
    _add_parts(records, ROWS)
    return records


def _merge(records: SplitRecords) -> SplitMerge:
    return SplitMerge(
        records,
        StepPacker(),
        interval_ms=1,
        out_of_orderness_ms=0,
        idleness_ms=None,
        first_arrival_ms=0,
        last_arrival_ms=ROWS - 1,
        window_emissions=1 << 20,
    )


def _summary() -> TimeSummary:
    summary = TimeSummary(interval_ms=1, idleness_ms=None, steps=True)
    summary.reserve(1)
    return summary


def _update_times(summary: TimeSummary) -> object:
    return summary.update(np.zeros(1, np.int32), np.array([0, ROWS]), NUMBERS, NUMBERS)


def _frames() -> Frames:
    return Frames(Accumulators(BATCH.schema, [("max", "text", None)], slides=True), rows=3)


def _matcher() -> PatternMatcher:
    return PatternMatcher(
        TimerHeap(1, (0, 0)),
        packed_steps([], []),
        steps_done=0,
        states=[[(1, 0, [(0, True)])], []],
        n_variables=1,
        skip="to next row",
        skip_variable=-1,
        within_ms=0,
        known=1,
        always=0,
        programs=[[]],
        n_columns=0,
        readers=[([], []), ([], [])],
    )


def _begin_search(matcher: PatternMatcher, n: int = ROWS) -> None:
    columns = ENTRIES[:n], GROUPS[:n], NUMBERS[:n], NUMBERS[:n], NUMBERS[:n]
    no_numbers = np.empty((n, 0), np.int64)
    matcher.begin(*columns, np.ones(n, np.uint64), no_numbers, np.zeros(n, np.uint64))


def _searched(matcher: PatternMatcher) -> object:
    _begin_search(matcher)
    return matcher.run()


def _pending_rows() -> PendingRows:
    return PendingRows(
        packed_steps([], []),
        max_parallelism=1,
        key_groups=(0, 0),
        steps_done=0,
        result_limit=1_000,
        bounded=True,
    )


def _wait(pending: PendingRows, n: int = ROWS) -> object:
    steps = np.zeros(n, np.int64)
    return pending.process(ENTRIES[:n], GROUPS[:n], None, NUMBERS[:n], NUMBERS[:n] + 1, steps)


SHARED: dict[type, Shared] = {
    Frames: Shared(
        _frames,
        lambda it: it.process(BATCH, np.zeros(ROWS, np.uint32)),
        {
            "process": lambda it: it.process(FEW, ENTRIES[:10]),
            "emit": lambda it: it.emit(ENTRIES[:10]),
            "clear": lambda it: it.clear(ENTRIES[:10]),
            "rows_of": lambda it: it.rows_of(ENTRIES[:10]),
            "previous": lambda it: it.previous(ENTRIES[:10]),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore(ENTRIES[:0], NO_FLAGS, NO_NUMBERS),
            "memory_bytes": lambda it: it.memory_bytes(),
        },
        {"can_retract"},
    ),
    PatternMatcher: Shared(
        _matcher,
        _searched,
        {
            "begin": lambda it: _begin_search(it, 10),
            "run": lambda it: it.run(),
            "asked": lambda it: it.asked(0),
            "answer": lambda it: it.answer(0, np.empty(0, np.uint8)),
            "settle": lambda it: it.settle(0),
            "take": lambda it: it.take(),
            "take_read": lambda it: it.take_read(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "live_rows": lambda it: it.live_rows(),
            "renumber": lambda it: it.renumber(NO_NUMBERS),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore("runs", NO_NUMBERS, GROUPS[:0], {}, FEW),
        },
        {"failure", "n_emitted", "live_count"},
    ),
    PendingRows: Shared(
        _pending_rows,
        _wait,
        {
            "process": lambda it: _wait(it, 10),
            "advance": lambda it: it.advance(0),
            "finish": lambda it: it.finish(),
            "take": lambda it: it.take(),
            "take_late": lambda it: it.take_late(),
            "take_cleared": lambda it: it.take_cleared(),
            "expire": lambda it: it.expire(0),
            "counts": lambda it: it.counts(),
            "live_rows": lambda it: it.live_rows(),
            "renumber": lambda it: it.renumber(NO_NUMBERS),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore("times", NO_NUMBERS, GROUPS[:0], {}, FEW),
            "memory_bytes": lambda it: it.memory_bytes(),
        },
        {"is_full", "current_watermark", "live_count"},
    ),
    Accumulators: Shared(
        _accumulators,
        lambda it: it.update(BATCH, ENTRIES),
        {
            "reserve": lambda it: it.reserve(ROWS + 1),
            "update": lambda it: it.update(FEW, ENTRIES[:10]),
            "merge": lambda it: it.merge(0, 1),
            "emit": lambda it: it.emit(ENTRIES[:10]),
            "emit_range": lambda it: it.emit_range(0, 10),
            "clear": lambda it: it.clear(ENTRIES[:10]),
            "clear_range": lambda it: it.clear_range(0, 10),
            "take": lambda it: it.take(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "accumulator_parts": lambda it: accumulator_parts(it, ENTRIES[:10]),
            "restore_accumulator_parts": lambda it: restore_accumulator_parts(
                it, ENTRIES[:0], np.empty(0, np.uint8), []
            ),
            "touched_entries": lambda it: touched_entries(it, ENTRIES[:10]),
        },
        {"__len__", "slides", "runs", "retracts"},
    ),
    KeyDictionary: Shared(
        _dictionary,
        lambda it: it.ids(BATCH),
        {
            "ids": lambda it: it.ids(FEW),
            "find": lambda it: it.find(FEW),
            "keys": lambda it: it.keys(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "key_group": lambda it: it.key_group(np.empty(0, np.uint32)),
        },
        {"__len__", "max_parallelism"},
    ),
    KeyEncoder: Shared(
        lambda: KeyEncoder(BATCH.schema, ["key", "text"]),
        lambda it: it.encode_batch(BATCH),
        {"encode_batch": lambda it: it.encode_batch(FEW)},
    ),
    KeyLists: Shared(
        _key_lists,
        lambda it: it.rows(NUMBERS),
        {
            "grow": lambda it: it.grow(2 * ROWS),
            "add": lambda it: it.add(NUMBERS[:1]),
            "lengths": lambda it: it.lengths(NUMBERS[:1]),
            "rows": lambda it: it.rows(NUMBERS[:1]),
            "clear": lambda it: it.clear(NUMBERS[:1]),
            "renumber": lambda it: it.renumber(),
            "memory_bytes": lambda it: it.memory_bytes(),
        },
        {"__len__", "numbered"},
    ),
    KeyTimers: Shared(
        _key_timers,
        lambda it: it.register(NUMBERS, NUMBERS[::-1].copy()),
        {
            "grow": lambda it: it.grow(2 * ROWS),
            "register": lambda it: it.register(NUMBERS[:1], NUMBERS[:1]),
            "delete": lambda it: it.delete(NUMBERS[:1], NUMBERS[:1]),
            "delete_all": lambda it: it.delete_all(NUMBERS[:1]),
            "first": lambda it: it.first(NUMBERS[:1]),
            "poll": lambda it: it.poll(NUMBERS[:1]),
            "due_keys": lambda it: it.due_keys(5),
            "memory_bytes": lambda it: it.memory_bytes(),
            "timers": lambda it: it.timers(),
        },
        {"__len__"},
    ),
    BatchCuts: Shared(
        _cuts,
        lambda it: it.take(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
        {
            "grow": lambda it: it.grow(2 * ROWS),
            "start_from": lambda it: it.start_from(0, 0),
            "lower_floors": lambda it: it.lower_floors(0),
            "rows_with_due_timers": lambda it: it.rows_with_due_timers(*[NUMBERS[:1]] * 3),
            "take": lambda it: it.take(*[NUMBERS[:1]] * 4),
            "take_waiting": lambda it: it.take_waiting(
                *[NUMBERS[:1]] * 5, np.zeros(1, np.int64), NUMBERS[:1]
            ),
            "fire": lambda it: it.fire(*[NUMBERS[:1]] * 4),
            "end_batch": lambda it: it.end_batch(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "seen": lambda it: it.seen(NUMBERS[:1]),
            "first_foreign": lambda it: it.first_foreign(NUMBERS[:1]),
            "first_too_early": lambda it: it.first_too_early(NUMBERS[:1], NUMBERS[:1], True),
        },
    ),
    TimerHeap: Shared(
        _heap,
        lambda it: it.register(LATER_TIMERS),
        {
            "add": lambda it: it.add(1, 1, 1),
            "remove": lambda it: it.remove(1, 1, 1),
            "move": lambda it: it.move(1, 2, 1, 1),
            "peek": lambda it: it.peek(),
            "poll": lambda it: it.poll(),
            "poll_due": lambda it: it.poll_due(5),
            "clear": lambda it: it.clear(),
            "__iter__": lambda it: iter(it),
            "register": lambda it: it.register(timer_batch([1], [1], [1])),
            "delete": lambda it: it.delete(timer_batch([1], [1], [1])),
            "advance": lambda it: it.advance(5),
            "timers": lambda it: it.timers(),
            "subset_for_key_group": lambda it: it.subset_for_key_group(0),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore(TimerHeap().snapshot()),
        },
        {"__len__", "size", "is_empty", "key_group_range", "max_parallelism"},
    ),
    DeduplicationKernel: Shared(
        _deduplication,
        lambda it: it.process(*EVENTS),
        {
            "forget_expired": lambda it: it.forget_expired(0),
            "process": lambda it: it.process(*EVENTS),
            "advance": lambda it: it.advance(0),
            "finish": lambda it: it.finish(),
            "take": lambda it: it.take(),
            "take_late": lambda it: it.take_late(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "live_rows": lambda it: it.live_rows(),
            "renumber": lambda it: it.renumber(NO_NUMBERS),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore("kept", NO_NUMBERS, {"row": NO_NUMBERS}, NO_STATE),
        },
        {"is_full", "counts", "current_watermark", "live_count"},
    ),
    TopKernel: Shared(
        _top,
        lambda it: it.process(*EVENTS, WORDS, None, None, None, None),
        {
            "process": lambda it: it.process(*EVENTS, WORDS, None, None, None, None),
            "advance": lambda it: it.advance(0),
            "finish": lambda it: it.finish(),
            "take": lambda it: it.take(),
            "take_late": lambda it: it.take_late(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "live_rows": lambda it: it.live_rows(),
            "renumber": lambda it: it.renumber(NO_NUMBERS),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore(
                "top",
                NO_NUMBERS,
                {"row": NO_NUMBERS, "words": WORDS[:0], "tail_ends": None, "tails": None},
                NO_STATE,
            ),
        },
        {"is_full", "counts", "current_watermark", "live_count"},
    ),
    JoinKernel: Shared(
        _join,
        _join_all,
        {
            "forget_expired": lambda it: it.forget_expired(0),
            "process": _join_all,
            "take_late": lambda it: it.take_late(),
            "advance": lambda it: it.advance(0),
            "finish": lambda it: it.finish(),
            "pairs": lambda it: it.pairs(),
            "take": lambda it: it.take(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "live_rows": lambda it: it.live_rows(0),
            "renumber": lambda it: it.renumber(NO_NUMBERS, 1),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore("left", NO_NUMBERS, {}, FEW),
        },
        {"is_full", "counts", "current_watermark", "live_count"},
    ),
    ChangingJoinKernel: Shared(
        _changing_join,
        _join_changes,
        {
            "forget_expired": lambda it: it.forget_expired(0),
            "process": _join_changes,
            "advance": lambda it: it.advance(0),
            "finish": lambda it: it.finish(),
            "pairs": lambda it: it.pairs(),
            "take": lambda it: it.take(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "live_rows": lambda it: it.live_rows(0),
            "renumber": lambda it: it.renumber(NO_NUMBERS, 1),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore("left", NO_NUMBERS, {}, FEW),
        },
        {"is_full", "counts", "current_watermark", "live_count", "expiry_checks"},
    ),
    ChangingTopKernel: Shared(
        _changing_top,
        lambda it: it.process(*EVENTS, WORDS, None, None, None, IDENTITIES),
        {
            "process": lambda it: it.process(*EVENTS, WORDS, None, None, None, IDENTITIES),
            "advance": lambda it: it.advance(0),
            "finish": lambda it: it.finish(),
            "take": lambda it: it.take(),
            "memory_bytes": lambda it: it.memory_bytes(),
            "live_rows": lambda it: it.live_rows(),
            "renumber": lambda it: it.renumber(NO_NUMBERS),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore("rows", NO_NUMBERS, {}, FEW),
        },
        {"is_full", "counts", "current_watermark", "live_count"},
    ),
    KeyExpiry: Shared(
        lambda: KeyExpiry(1),
        lambda it: it.write(ENTRIES, NUMBERS),
        {
            "write": lambda it: it.write(ENTRIES, NUMBERS),
            "expire": lambda it: it.expire(0),
            "memory_bytes": lambda it: it.memory_bytes(),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore(NO_NUMBERS, NO_NUMBERS),
        },
    ),
    KeptValues: Shared(
        _kept_values,
        _keep_all,
        {
            "process": _keep_all,
            "emit": lambda it: it.emit(ENTRIES),
            "take": lambda it: it.take(),
            "sizes_of": lambda it: it.sizes_of(ENTRIES),
            "memory_bytes": lambda it: it.memory_bytes(),
            "live_rows": lambda it: it.live_rows(),
            "renumber": lambda it: it.renumber(NO_NUMBERS),
            "snapshot": lambda it: it.snapshot(),
            "restore": lambda it: it.restore(*[NO_NUMBERS] * 5),
        },
        {"__len__"},
    ),
    RowtimeWatermarkGenerator: Shared(
        _rowtimes,
        lambda it: it.on_events(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
        {
            "on_events": lambda it: it.on_events(*[NUMBERS[:1]] * 4),
            "on_ticks_before": lambda it: it.on_ticks_before(5),
            "state": lambda it: it.state,
        },
    ),
    StatusWatermarkValve: Shared(
        lambda: StatusWatermarkValve(1),
        lambda it: it.input_batch(GROUPS, np.zeros(ROWS, np.int8), NUMBERS),
        {
            "input_watermark": lambda it: it.input_watermark(0, 1),
            "input_watermark_status": lambda it: it.input_watermark_status(0, "idle"),
            "input_batch": lambda it: it.input_batch(GROUPS[:1], np.zeros(1, np.int8), NUMBERS[:1]),
            "restore": lambda it: it.restore(NUMBERS[:1], np.zeros(1, np.uint8), 0),
            "state": lambda it: it.state(),
        },
        {"channels", "current_watermark", "is_idle"},
    ),
    TimeSummary: Shared(
        _summary,
        _update_times,
        {
            "reserve": lambda it: it.reserve(2),
            "update": _update_times,
            "take": lambda it: it.take(),
            "finish": lambda it: it.finish(),
        },
        {"nbytes"},
    ),
    SplitRecords: Shared(
        _records,
        lambda it: _merge(it).run(),
        {"add_parts": lambda it: _add_parts(it, 10)},
    ),
    JsonKeys: Shared(
        lambda: JsonKeys([(-1, b"", 1), (0, b"a", 0)]),
        lambda it: it.scan(LINES),
        {"scan": lambda it: it.scan(LINES[:100]), "others": lambda it: it.others()},
        {"line", "left_out"},
    ),
    TextParts: Shared(
        lambda: TextParts(ColumnArray(BATCH.column("text")), b"/"),
        lambda it: it.part(0),
        {"part": lambda it: it.part(1)},
    ),
    LatenessCounter: Shared(
        lambda: LatenessCounter(
            packed_steps(NUMBERS[:1] - 1, NUMBERS[-1:]), np.arange(4), np.arange(5, dtype=np.int32), 0, 1
        ),
        lambda it: it.update(np.zeros(1, np.int32), np.array([0, ROWS]), NUMBERS, NUMBERS),
        {
            "add_windows": lambda it: it.add_windows(
                size=10, slide=10, offset=0, cumulative=False, allowed_lateness_ms=np.zeros(1, np.int64)
            ),
            "begin": lambda it: it.begin(np.zeros(1, np.int32), NUMBERS[:1]),
            "update": lambda it: it.update(GROUPS[:1], np.array([0, 10]), NUMBERS[:10], NUMBERS[:10]),
            "arrived": lambda it: it.arrived(GROUPS[:1], np.array([0, 10]), NUMBERS[:10]),
            "add": lambda it: it.add({}),
            "counts": lambda it: it.counts(),
        },
    ),
    StepPacker: Shared(
        StepPacker,
        lambda it: it.add(NUMBERS, NUMBERS),
        {"add": lambda it: it.add(NUMBERS[:10], NUMBERS[:10]), "finish": lambda it: it.finish()},
        {"__len__"},
    ),
    SplitMerge: Shared(
        lambda: _merge(_records()),
        lambda it: it.run(),
        {
            "run": lambda it: it.run(),
            "run_before": lambda it: it.run_before(0),
            "statuses": lambda it: it.statuses(),
            "holders": lambda it: it.holders(),
            "idle_spans": lambda it: it.idle_spans(),
            "paused_spans": lambda it: it.paused_spans(),
            "final_watermarks": lambda it: it.final_watermarks(),
            "split_merge_state": lambda it: split_merge_state(it),
            "restore_split_merge": lambda it: restore_split_merge(it, {}, 0),
        },
    ),
    WindowOperator: Shared(
        _operator,
        _process,
        {
            "process": _process,
            "advance": lambda it: it.advance(0),
            "finish": lambda it: it.finish(),
            "windows": lambda it: it.windows(),
            "restore": lambda it: it.restore(ENCODED, NO_NUMBERS, NO_NUMBERS, NO_NUMBERS, NO_FLAGS),
            "take": lambda it: it.take(),
            "take_late": lambda it: it.take_late(),
            "counts": lambda it: it.counts(),
            "live_windows": lambda it: it.live_windows,
            "memory_bytes": lambda it: it.memory_bytes(),
        },
        {"kind", "is_full", "rows_ready", "current_watermark"},
    ),
}
# Classes without a method that lets go of the GIL, but for those that call into the objects above.
NEVER_WITHOUT_THE_GIL = {
    "ArrivalClock",
    "BlockListColumn",
    "BlockMapColumn",
    "BooleanColumn",
    "BytesColumn",
    "Call",
    "CallContext",
    "CallOfKey",
    "CanonicalKey",
    "ChoiceColumn",
    "ColumnArray",
    "ConversionUnless",
    "CsvTokens",
    "CurrentKey",
    "CurrentKeyEntries",
    "CurrentKeyValues",
    "DecimalColumn",
    "EitherColumn",
    "EntryBlocks",
    "EntryTable",
    "ExtractedTimestamps",
    "FieldsConversion",
    "FilterCall",
    "FixedBytesColumn",
    "FixedColumn",
    "FunctionTimers",
    "JoinKind",
    "KeyedCall",
    "LargestTimestamp",
    "ListColumn",
    "MapCall",
    "MapColumn",
    "MapEntries",
    "MapKeys",
    "NativeArray",
    "NothingColumn",
    "NullableColumn",
    "OpenPaneCall",
    "OptionalColumn",
    "PojoColumn",
    "RecordBatch",
    "RecordColumn",
    "ReduceCall",
    "RestColumn",
    "ResultCollector",
    "RowColumn",
    "RowsColumn",
    "SingleColumn",
    "SizedColumn",
    "SplitOperators",
    "SqlBooleanColumn",
    "SqlColumn",
    "SqlTextColumn",
    "SqlValue",
    "StateColumn",
    "StepReader",
    "StreamRecord",
    "StringColumn",
    "StructColumn",
    "TextColumn",
    "TimeColumn",
    "TimestampCall",
    "UnionColumn",
    "WatermarkGenerator",
    "WindowKernel",
    "WrappingColumn",
}
NEVER_CHANGED = {"PackedSteps", "RowPlaces", "WindowCalendar"}
TESTED_BELOW = {"CheckedStream", "CurrentKeyTimers"}
MADE_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: such a class has no state in C


def _native_classes() -> dict[str, type]:
    found = {}
    for module in pkgutil.iter_modules(flinkcore._native.__path__):
        loaded = importlib.import_module(f"flinkcore._native.{module.name}")
        for name, value in vars(loaded).items():
            is_own = isinstance(value, type) and value.__module__ == loaded.__name__
            if is_own and not value.__flags__ & MADE_BY_PYTHON:
                found[name] = value
    return found


def _public(of: type) -> set[str]:
    names = {name for name in vars(of) if not name.startswith("_")}
    return names | {name for name in ("__len__", "__iter__") if name in vars(of)}


def test_every_native_class_is_guarded_or_needs_no_guard() -> None:
    native = set(_native_classes())
    assert native == {of.__name__ for of in SHARED} | NEVER_WITHOUT_THE_GIL | NEVER_CHANGED | TESTED_BELOW


@pytest.mark.parametrize("of", SHARED, ids=lambda of: of.__name__)
def test_every_method_of_a_guarded_class_is_called_below(of: type) -> None:
    shared = SHARED[of]
    own = {name for name in shared.calls if not inspect.isfunction(getattr(flinkcore._native, name, None))}
    assert _public(of) <= own | shared.numbers


@pytest.mark.parametrize("of", SHARED, ids=lambda of: of.__name__)
def test_a_second_thread_is_refused_and_nothing_is_corrupted(of: type) -> None:
    """Each method is called while another thread is in the long one, until it is refused."""
    shared = SHARED[of]
    unrefused = set(shared.calls)
    deadline = time.monotonic() + 60
    while unrefused and time.monotonic() < deadline:
        it = shared.make()
        runs = threading.Event()

        def work(it: Any = it, runs: threading.Event = runs) -> None:
            runs.set()
            try:
                shared.long(it)
            except RuntimeError as refusal:  # the other one came first
                assert "is in another call" in str(refusal)  # noqa: PT017

        thread = threading.Thread(target=work)
        thread.start()
        runs.wait()
        while thread.is_alive() and unrefused:
            name = min(unrefused)
            try:
                shared.calls[name](it)
            except RuntimeError as refusal:
                assert "in another call; let one thread at a time use it" in str(refusal)  # noqa: PT017
                unrefused.discard(name)
            except (TypeError, ValueError, KeyError):
                pass  # it came too early or too late for its arguments
        thread.join()
        if hasattr(it, "_check") and of is not WindowOperator:
            it._check()
    assert not unrefused


def test_a_method_is_entered_before_its_arguments_are_read() -> None:
    keys = _dictionary()
    for method in (keys.ids, keys.find):
        with pytest.raises(RuntimeError, match="this KeyDictionary is in another call"):
            method(CallsBack(FEW, keys.keys))
        assert method(FEW).tolist() == keys.ids(FEW).tolist()
    accumulators = _accumulators()
    with pytest.raises(RuntimeError, match="this Accumulators is in another call"):
        accumulators.update(CallsBack(FEW, accumulators.take), ENTRIES[:10])
    encoder = KeyEncoder(BATCH.schema, ["text"])
    with pytest.raises(RuntimeError, match="this KeyEncoder is in another call"):
        encoder.encode_batch(CallsBack(FEW, lambda: encoder.encode_batch(FEW)))
    encoder.encode_batch(FEW)


def test_keys_are_read_by_several_operators_at_once_and_not_encoded_meanwhile() -> None:
    encoder = KeyEncoder(BATCH.schema, ["text"])
    encoder.encode_batch(BATCH)
    errors: list[Exception] = []
    refused = threading.Event()

    def work() -> None:
        try:
            _operator().process(COLUMNS, encoder, None, NUMBERS, np.zeros(ROWS, np.int64))
        except RuntimeError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not refused.is_set():
        try:
            encoder.encode_batch(CallsBack(BATCH, lambda: None))
        except RuntimeError:
            refused.set()
    for thread in threads:
        thread.join()
    assert refused.is_set() or errors  # whoever came second
    assert all("this KeyEncoder is in another call" in str(error) for error in errors)


def test_a_stream_is_read_by_one_thread() -> None:
    class Exporter:
        def __init__(self) -> None:
            self.stream: CheckedStream | None = None
            self.error: Exception | None = None

        def batches(self) -> Any:
            yield FEW
            try:
                next(self.stream)  # type: ignore[arg-type]
            except RuntimeError as error:
                self.error = error
            yield FEW

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            reader = pa.RecordBatchReader.from_batches(FEW.schema, self.batches())
            return reader.__arrow_c_stream__()

    exporter = Exporter()
    exporter.stream = CheckedStream(exporter)
    assert [len(batch) for batch in exporter.stream] == [10, 10]
    assert "this CheckedStream is in another call" in str(exporter.error)


def test_timers_of_the_current_key_are_those_of_a_guarded_heap() -> None:
    heap = _heap()
    current = CurrentKey({}, [], [], lambda key: None)
    timers = CurrentKeyTimers(heap, current, lambda time: 0)
    refused = 0
    while not refused:
        thread = threading.Thread(target=lambda: heap.register(LATER_TIMERS))
        thread.start()
        while thread.is_alive() and not refused:
            for call in (timers.add, timers.remove):
                try:
                    call(1)
                except RuntimeError:
                    refused += 1
                except DataError:
                    pass
        thread.join()
