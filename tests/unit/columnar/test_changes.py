"""Operators over rows that come and are withdrawn: what they give at once, what is left, and state on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.small_batches import read_in_batches_of

from flinkcore.common import Configuration
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count, first, last, max_, min_, sum_
from flinkcore.errors import DataError, SchemaError

MEMORY = "taskmanager.memory.managed.size"
ROWS = [("a", number * 7 % 5, f"text {number % 4}") for number in range(12)]
WITHDRAWN = [("-U", row) for row in ROWS[2:8]]
CHANGES = [*(("+I", row) for row in ROWS), *WITHDRAWN, ("+U", ("a", 9, "new")), ("-D", ROWS[0])]

MIXED = [(kind, ("abc"[row[1] % 3], *row[1:])) for kind, row in CHANGES]
"""Of three keys."""


def environment(parallelism: int = 2, memory: int | None = None) -> StreamExecutionEnvironment:
    """An environment, perhaps with memory for so many bytes of state, which reads four rows at once."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism).set_max_parallelism(8)
    read_in_batches_of(4, env)
    if memory is not None:
        env.configure(Configuration().set_string(MEMORY, f"{memory} b"))
    return env


def stream_of(
    rows: list[tuple[str, tuple[Any, ...]]],
    env: StreamExecutionEnvironment | None = None,
    first: int = 0,
    **names: str,
) -> Any:
    """A keyed stream of changes, of a kind and a row each."""
    table = pa.table(
        {
            names.get("k", "k"): [row[0] for _, row in rows],
            names.get("n", "n"): pa.array([row[1] for _, row in rows], pa.int64()),
            names.get("text", "text"): [row[2] for _, row in rows],
            "row_kind": [kind for kind, _ in rows],
            names.get("ts", "ts"): pa.array(range(first, first + len(rows)), pa.int64()),
        }
    )
    env = environment() if env is None else env
    time = names.get("ts", "ts")
    log = env.from_event_log(table, timestamp=time, timestamp_unit="ms", arrival=time)
    return log.select(*(name for name in table.column_names if name != time)).key_by(names.get("k", "k"))


def left_of(changes: list[dict[str, Any]]) -> list[str]:
    """What changes leave."""
    left: list[str] = []
    for change in changes:
        kind = change.pop("row_kind")
        if kind in ("+I", "+U"):
            left.append(str(change))
        else:
            left.remove(str(change))  # an error if it is not there
    return sorted(left)


def rows_of(stream: Any, **settings: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = stream.execute(**settings).to_arrow().to_pylist()
    return rows


CALLS = {
    "top": lambda env, keyed, changes: keyed.top(3, "n", changes=changes),
    "top without ranks": lambda env, keyed, changes: keyed.top(
        3, ["text", "n"], rank_column=None, changes=changes
    ),
    "values": lambda env, keyed, changes: keyed.aggregate(
        n=count(), first=first("text"), last=last("n"), all=collect("n"), most=max_("n"), changes=changes
    ),
    **{
        f"{how} join": lambda env, keyed, changes, how=how: keyed.join_regular(
            stream_of(CHANGES[3:], env, k="key", n="m", text="words", ts="at"), how, changes=changes
        )
        for how in ("inner", "left", "right", "full", "semi", "anti")
    },
}


def called(
    call: str, changes: bool, env: StreamExecutionEnvironment, rows: Any = MIXED, first: int = 0
) -> Any:
    return CALLS[call](env, stream_of(rows, env, first), changes)


@pytest.mark.parametrize("call", ["top", "values"])
def test_rows_before_updates_can_be_left_out(call: str) -> None:
    changes = rows_of(called(call, True, environment(1)))
    without = called(call, True, environment(1))
    without._transformation.settings.update_before = False
    assert {change["row_kind"] for change in changes} >= {"+U", "-U"}
    assert rows_of(without) == [change for change in changes if change["row_kind"] != "-U"]


@pytest.mark.parametrize("call", CALLS)
def test_changes_leave_what_is_final(call: str) -> None:
    final = sorted(map(str, rows_of(called(call, False, environment()))))
    assert final
    assert left_of(rows_of(called(call, True, environment()))) == final


@pytest.mark.parametrize("call", list(CALLS)[:3])
def test_changes_are_the_same_across_a_checkpoint_with_other_partitions(tmp_path: Path, call: str) -> None:
    whole = rows_of(called(call, True, environment()))
    early = rows_of(called(call, True, environment(), MIXED[:14]), stop_with_checkpoint=tmp_path)
    later = rows_of(called(call, True, environment(3), MIXED[14:], 14), restore_from=tmp_path)
    assert sorted(map(str, [*early, *later])) == sorted(map(str, whole))


def test_a_join_of_changes_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    def joined(left: Any, right: Any, parallelism: int = 2, begin: int = 0) -> Any:
        env = environment(parallelism)
        others = stream_of(right, env, begin, k="key", n="m", text="words", ts="at")
        return stream_of(left, env, begin).join_regular(others, "full", changes=True)

    whole = rows_of(joined(CHANGES, CHANGES[3:]))
    early = rows_of(joined(CHANGES[:10], CHANGES[3:13]), stop_with_checkpoint=tmp_path)
    later = rows_of(joined(CHANGES[10:], CHANGES[13:], 3, 10), restore_from=tmp_path)
    assert len(early) > 3
    assert len(later) > 3
    assert left_of([*early, *later]) == left_of(whole)


@pytest.mark.parametrize("call", CALLS)
def test_state_that_spills_gives_the_same_changes(call: str) -> None:
    whole = rows_of(called(call, True, environment(1)))
    spilled = rows_of(called(call, True, environment(1, memory=0)))
    assert sorted(map(str, spilled)) == sorted(map(str, whole))


@pytest.mark.parametrize(
    "called",
    [
        lambda keyed: keyed.top(3, "n"),
        lambda keyed: keyed.deduplicate("last", by="arrival"),
        lambda keyed: keyed.aggregate(n=count()),
        lambda keyed: keyed.join_regular(keyed, "left"),
    ],
    ids=["top", "deduplicate", "aggregate", "join"],
)
@pytest.mark.parametrize("kinds", [pa.array([0, 3], pa.int64()), pa.nulls(2)], ids=["int64", "null"])
def test_a_row_kind_that_is_no_text_is_refused_when_the_job_is_planned(called: Any, kinds: pa.Array) -> None:
    table = pa.table({"k": ["a", "a"], "n": [1, 2], "row_kind": kinds, "ts": pa.array([0, 1], pa.int64())})
    log = environment().from_event_log(table, timestamp="ts", timestamp_unit="ms", arrival="ts")
    with pytest.raises(SchemaError, match=f"'row_kind' is {kinds.type}.*Cast it to string, or rename"):
        called(log.key_by("k")).execute()


@pytest.mark.parametrize("kind", [pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_a_row_kind_may_be_any_text(kind: pa.DataType) -> None:
    kinds = pa.array(["+I", "-D"])
    kinds = kinds.dictionary_encode() if pa.types.is_dictionary(kind) else kinds.cast(kind)
    table = pa.table({"k": ["a", "a"], "n": [1, 1], "row_kind": kinds, "ts": pa.array([0, 1], pa.int64())})
    log = environment().from_event_log(table, timestamp="ts", timestamp_unit="ms", arrival="ts")
    found = rows_of(log.select("k", "n", "row_kind").key_by("k").aggregate(n=count(), changes=True))
    assert [row["row_kind"] for row in found] == ["+I", "-D"]


REPLACED = [("+I", ("a", 5, "x")), ("-D", ("a", 7, "never came")), ("+I", ("a", 9, "y"))]
"""When as many rows are withdrawn as came, one of those that came is left."""


def replaced(rows: Any, begin: int = 0, changes: bool = True) -> Any:
    return stream_of(rows, environment(), begin).aggregate(
        c=count(), s=sum_("n"), f=first("n"), z=last("n"), all=collect("n"), changes=changes
    )


@pytest.mark.parametrize("changes", [False, True])
def test_a_key_begins_anew_when_as_many_rows_are_withdrawn_as_came(changes: bool) -> None:
    ignored = ("-D", ("a", 9, "while there is no row"))
    *_, found = rows_of(replaced([ignored, *REPLACED[:2], ignored, REPLACED[2]], changes=changes))
    found.pop("row_kind", None)
    assert found == {"k": "a", "c": 1, "s": 9, "f": 9, "z": 9, "all": [9]}


def test_a_key_begins_anew_after_a_checkpoint_too(tmp_path: Path) -> None:
    rows = [("+I", ("a", 1, "x")), *REPLACED[:2], ("-D", ("a", 8, "never came")), REPLACED[2]]
    early = rows_of(replaced(rows[:3]), stop_with_checkpoint=tmp_path)
    later = rows_of(replaced(rows[3:], 3), restore_from=tmp_path)
    assert early[-1]["all"] == [1, 5]
    assert [(row["row_kind"], row["all"]) for row in later] == [("-D", [1, 5]), ("+I", [9])]


def test_withdrawn_rows_of_a_key_let_others_move_up() -> None:
    stream = stream_of(
        [
            ("+I", ("a", 1, "x")),
            ("+I", ("a", 3, "y")),
            ("+I", ("a", 2, "z")),
            ("-D", ("a", 3, "y")),
            ("-D", ("a", 7, "never came")),
        ]
    )
    found = stream.top(2, "n", changes=True).select("row_kind", "text", "rank").to_arrow()
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("+I", "x", 1),
        ("-U", "x", 1),
        ("+U", "y", 1),
        ("+I", "x", 2),
        ("-U", "x", 2),
        ("+U", "z", 2),
        ("-U", "y", 1),
        ("+U", "z", 1),
        ("-U", "z", 2),
        ("+U", "x", 2),
    ]


def test_equal_ranks_of_changes_are_final() -> None:
    stream = stream_of([("+I", ("a", n, str(n))) for n in (5, 5, 4, 5)] + [("-D", ("a", 5, "5"))])
    found = stream.top(2, "n", rank="dense_rank").select("n", "rank").to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [(5, 1), (5, 1), (4, 2)]


@pytest.mark.parametrize("changes", [True, False])
def test_the_last_row_of_a_key_is_normalized(changes: bool, tmp_path: Path) -> None:
    rows: list[tuple[str, tuple[Any, ...]]] = [
        ("+U", ("a", 1, "x")),
        ("+I", ("a", 1, "x")),
        ("-U", ("b", 1, "never came")),
        ("+U", ("a", 2, "x")),
        ("-D", ("a", None, None)),
        ("-D", ("a", None, None)),
        ("+I", ("a", 3, "x")),
    ]

    def normalized(part: Any, begin: int = 0) -> Any:
        return stream_of(part, first=begin).deduplicate("last", "arrival", changes=changes)

    early = rows_of(normalized(rows[:2]), stop_with_checkpoint=tmp_path)
    found = [*early, *rows_of(normalized(rows[2:], 2), restore_from=tmp_path)]
    if not changes:
        assert [tuple(row.values()) for row in found] == [("a", 3, "x")]
        return
    assert [(row["row_kind"], row["n"]) for row in found] == [
        ("+I", 1),
        ("-U", 1),
        ("+U", 2),
        ("-D", 2),
        ("+I", 3),
    ]


def test_of_equal_values_the_first_is_withdrawn() -> None:
    changes = [("+I", ("a", 1, "x")), ("+I", ("a", 2, "y")), ("+I", ("a", 1, "x")), ("-U", ("a", 1, "x"))]
    stream = stream_of(changes).aggregate(first=first("n"), last=last("n"), all=collect("text"))
    assert rows_of(stream) == [{"k": "a", "first": 2, "last": 1, "all": ["y", "x"]}]


def test_null_values_come_and_are_withdrawn() -> None:
    rows = [("+I", ("a", None, "x")), ("+I", ("a", 4, "y")), ("-D", ("a", None, "x"))]
    stream = stream_of(rows).aggregate(first=first("n"), least=min_("n"), total=sum_("n"), changes=True)
    assert [row["first"] for row in rows_of(stream)] == [None, None, None, None, 4]


def test_a_row_without_a_kind_is_an_error() -> None:
    with pytest.raises(DataError, match=r"row_kind = 'insert'; a change is one of \+I, -U"):
        rows_of(stream_of([("insert", ("a", 1, "x"))]).top(1, "n"))
