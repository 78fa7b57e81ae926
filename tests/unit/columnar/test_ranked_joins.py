"""A join whose pairs are ranked by the same key is one operator; others stay two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.small_batches import read_in_batches_of

from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.columnar.relational.ranked_pairs import pairs_of, rows_of
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import KeyedLogStream, LogStream, StreamExecutionEnvironment
from flinkcore.errors import DataError

BOUND = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
SECOND = Time.seconds(1)


def stream(rows: list[dict[str, Any]], batch_rows: int = 1 << 16, n_bytes: int = 1 << 20) -> KeyedLogStream:
    env = ENVIRONMENT
    read_in_batches_of(batch_rows, env, n_bytes)
    table = pa.Table.from_pylist([{**row, "at": number} for number, row in enumerate(rows)])
    log = env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at")
    columns = [name for name in table.column_names if name != "at"]
    return log.assign_timestamps_and_watermarks(BOUND).select(*columns).key_by("k")


ENVIRONMENT = StreamExecutionEnvironment().set_parallelism(1)
ENVIRONMENT.get_config().set_auto_watermark_interval(1)
LEFT = [{"k": "a", "ts": 10, "until": 30}, {"k": "b", "ts": 12, "until": 40}]
RIGHT = [
    {"k": "a", "ts": 15, "v": 1},
    {"k": "a", "ts": 16, "v": 5},
    {"k": "a", "ts": 35, "v": 9},
    {"k": "b", "ts": 18, "v": 2},
]


def joined(**settings: Any) -> LogStream:
    given = {"where": pc.field("ts_right") <= pc.field("until"), **settings}
    return stream(LEFT).join_interval(stream(RIGHT), Time.milliseconds(0), SECOND, **given)


def changing() -> LogStream:
    return stream(LEFT).join_regular(stream(RIGHT), changes=True)


def n_operators(results: LogStream) -> int:
    return len(results.execute()._plan.stages)  # type: ignore[attr-defined]


def test_the_best_match_of_a_row_comes_when_its_time_is_up() -> None:
    best = joined().key_by("k").top(1, by="v", rank_column=None, window_end="until")
    assert n_operators(best) == 1
    found = best.select("k", "until", "v").execute()
    assert found.to_arrow().to_pylist() == [{"k": "a", "until": 30, "v": 5}, {"k": "b", "until": 40, "v": 2}]
    assert found.report.processed == len(LEFT) + len(RIGHT)


def test_each_better_match_of_a_row_comes_at_once_as_a_change() -> None:
    best = joined().key_by("k").top(1, by="v", rank_column=None, changes=True)
    assert n_operators(best) == 1
    found = best.select("row_kind", "k", "v").execute().to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("+I", "a", 1),
        ("-U", "a", 1),
        ("+U", "a", 5),
        ("+I", "b", 2),
    ]


def test_a_key_that_steps_rename_is_the_same_key() -> None:
    renamed = joined().select("until", "v", key=pc.field("k"))
    best = renamed.key_by("key").top(1, by="v", rank_column=None, window_end="until")
    assert n_operators(best) == 1
    found = best.select("key", "v").execute().to_arrow().to_pylist()
    assert found == [{"key": "a", "v": 5}, {"key": "b", "v": 2}]


@pytest.mark.parametrize(
    "of_pairs",
    [
        lambda: joined().key_by("v").top(1, by="ts"),
        lambda: joined(how="full").key_by("k").top(1, by="ts"),
        lambda: changing().key_by("k").top(1, by="v"),
        lambda: joined().with_columns(k=pc.utf8_upper(pc.field("k"))).key_by("k").top(1, by="v"),
        lambda: joined().with_emitted_at("emitted").key_by("k").top(1, by="v"),
        lambda: joined().uid("pairs").key_by("k").top(1, by="v"),
    ],
    ids=["another key", "keys with nulls", "changes", "a computed key", "times of emission", "a name"],
)
def test_a_rank_that_needs_the_pairs_themselves_stays_an_operator_of_its_own(of_pairs: Any) -> None:
    assert n_operators(of_pairs()) == 2


def test_a_join_whose_pairs_go_elsewhere_too_stays_an_operator_of_its_own() -> None:
    pairs = joined()
    best = pairs.key_by("k").top(1, by="v", rank_column=None)
    assert n_operators(best.union(pairs)) == 3


def test_pairs_that_are_late_for_their_window_are_counted() -> None:
    left = [{"k": "a", "ts": 3_000, "until": 100}, {"k": "a", "ts": 3_002, "until": 100}]
    right = [{"k": "a", "ts": 3_001, "v": 1}, {"k": "a", "ts": 6_000, "v": 2}]
    pairs = stream(left).join_interval(stream(right), Time.milliseconds(-10), SECOND)
    result = pairs.key_by("k").top(1, by="v", window_end="until").execute()
    result.to_arrow()
    assert result.report.late_pairs == 1
    assert "1 pair of rows dropped: late for their window" in str(result.report)


def test_an_end_of_a_window_beyond_all_times_is_an_error_that_names_the_column() -> None:
    left = [{"k": "a", "ts": 10, "until": (1 << 63) - 5}]
    pairs = stream(left).join_interval(stream(RIGHT), Time.milliseconds(0), SECOND)
    with pytest.raises(DataError, match="'until', the end of each row's window"):
        pairs.key_by("k").top(1, by="v", window_end="until").execute().to_arrow()


def test_rows_that_neither_the_join_nor_the_rank_needs_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    keep = NumberedRows.keep

    def noted(self: NumberedRows, live: Any) -> Any:
        freed.append(len(self) - len(set(live.tolist())))
        return keep(self, live)

    monkeypatch.setattr(NumberedRows, "keep", noted)
    random = np.random.default_rng(5)
    left = [
        {"k": f"k{n % 7}", "ts": 10 * n, "until": 10 * n + 400, "text": f"left {n}" * 5} for n in range(300)
    ]
    right = [
        {"k": f"k{n % 7}", "ts": 3 * n, "v": int(random.integers(50)), "more": f"right {n}" * 5}
        for n in range(1000)
    ]

    def best(key: pc.Expression) -> tuple[int, list[Any]]:
        pairs = stream(left, 16, 500).join_interval(
            stream(right, 16, 500), Time.milliseconds(0), Time.milliseconds(300)
        )
        rows = pairs.with_columns(k=key) if key is not None else pairs
        given = rows.key_by("k").top(2, by="v", window_end="until")
        return n_operators(given), sorted(map(str, given.execute().to_arrow().to_pylist()))

    one, found = best(None)
    n_freed = len(freed)
    two, expected = best(pc.utf8_lower(pc.field("k")))
    assert (one, two) == (1, 2)
    assert n_freed > 3
    assert max(freed[:n_freed]) > 10
    assert len(found) > 300
    assert found == expected


def test_a_pair_of_rows_is_a_number_and_back() -> None:
    left, right = np.array([0, 5, 2**31 - 3, 7]), np.array([2**31 - 3, 0, 2**31 - 3, -1])
    pairs = pairs_of(left, right)
    assert (pairs >= 0).all()
    assert [each.tolist() for each in rows_of(pairs)] == [left.tolist(), right.tolist()]
