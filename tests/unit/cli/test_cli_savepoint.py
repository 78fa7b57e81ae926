"""`flinkcore savepoint`: what people see of a savepoint of Flink."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from equipment.written_savepoints import (
    LONG,
    STRING,
    Entry,
    i64,
    list_of,
    map_of,
    simple,
    state,
    string,
    write_savepoint,
)

from flinkcore import savepoints
from flinkcore.cli import main

CASES = Path(__file__).parents[2] / "golden" / "savepoints" / "cases"
STATES = [
    state("count", "VALUE", LONG),
    state("seen", "LIST", list_of(STRING)),
    state("sums", "MAP", map_of(STRING, LONG)),
]


def key(group: int, text: str) -> bytes:
    return bytes([group]) + string(text) + b"\0"


def groups(a: int = 1, b: int = 2, c: str = "x") -> dict[int, list[Entry]]:
    return {
        1: [(0, key(1, "a"), i64(a)), (1, key(1, "a"), string(c) + b"," + string("y"))],
        7: [(0, key(7, "b"), i64(b)), (2, key(7, "b") + string("k"), b"\0" + i64(5))],
    }


def shown(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> str:
    assert main(["savepoint", *map(str, arguments)]) == status
    return capsys.readouterr().out


def test_the_overview_names_operators_states_and_types(capsys: pytest.CaptureFixture[str]) -> None:
    path = CASES / "chain-rocks3z" / "savepoint"
    assert shown(capsys, "show", path, "--operator", "win") == (
        f"""\
savepoint {path}
metadata version 6, checkpoint 1, 8 operators

operator 'win': name 'TumblingEventTimeWindows', id 1fda57489fc99cc8f66c9108fd52ccef, parallelism 3, 200 key groups
  timers 'processing_window-timers': by String, in TimeWindow, 0 entries
  timers 'event_window-timers': by String, in TimeWindow, 22 entries
    from 1970-01-01 00:17:49.999Z to 1970-01-01 00:17:59.999Z
  reducing state 'window-contents': Tuple3<String, Long, Long> by String, in TimeWindow, 22 entries
"""
    )


def test_operators_without_state_are_named_last(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", CASES / "count_timers-heap1" / "savepoint", "--no-counts")
    assert "list state 'seen': List<String> by String\n" in text
    assert text.endswith("\nwithout state: 'sink-counter', 'src', 'stamp-counter'\n")


def test_states_that_only_java_can_read_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", CASES / "refuse_kryo-heap1" / "savepoint")
    assert "bytes, as only Java can read Kryo<flinksp.Pojos$Opaque>" in text


def test_entries_of_a_state_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_savepoint(tmp_path / "s", STATES, groups())
    assert shown(capsys, "show", path, "--state", "count") == "a: 1\nb: 2\n"
    assert shown(capsys, "show", path, "--state", "count", "--key", "b") == "b: 2\n"
    assert shown(capsys, "show", path, "--state", "count", "--limit", 1) == "a: 1\n… 1 more\n"
    assert shown(capsys, "show", path, "--state", "seen") == "a: ['x', 'y']\n"
    assert shown(capsys, "show", path, "--state", "sums") == "b: k: 5\n"


def test_timers_and_times_of_last_access_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    timers = (
        "show",
        CASES / "count_timers-heap1" / "savepoint",
        "--state",
        "event_user-timers",
        "--key",
        "bob",
    )
    assert shown(capsys, *timers) == "bob: 1970-01-01 00:18:02.000Z\n"
    text = shown(capsys, "show", CASES / "ttl-heap3" / "savepoint", "--state", "value", "--limit", 1)
    assert "(last access 2026-" in text.splitlines()[0]


def test_a_state_becomes_a_parquet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_savepoint(tmp_path / "s", STATES, groups())
    export = ("export", path, "--operator", "op", "--state", "sums", "--to", tmp_path / "sums.parquet")
    assert shown(capsys, *export) == f"1 row of state 'sums' in {tmp_path / 'sums.parquet'}\n"
    written = pq.read_table(tmp_path / "sums.parquet")
    assert written.equals(savepoints.open(path).operator("op").state("sums").to_arrow())
    assert main(["savepoint", *map(str, export)]) == 1
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "case", ["keys_row_long_string-heap1", "interval_join-heap1", "evictor_count-heap3", "ttl-heap3"]
)
def test_every_state_can_be_exported(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = CASES / case / "savepoint"
    for operator in savepoints.open(path, exact=True).operators:
        for number, name in enumerate(operator.states):
            file = tmp_path / f"{operator.operator_id}-{number}.parquet"
            given = ("--operator", operator.operator_id, "--state", name, "--to", file, "--exact")
            shown(capsys, "export", path, *given)
            assert pq.read_table(file).num_rows == operator.states[name].count()


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries: list[Entry] = [(0, key(1, "a"), b"\x02\x80\xb0\x03")]
    path = write_savepoint(tmp_path / "s", [state("text", "VALUE", STRING)], {1: entries})
    file = tmp_path / "text.parquet"
    assert main(["savepoint", "export", str(path), "--state", "text", "--to", str(file)]) == 1
    assert "half of a surrogate pair" in capsys.readouterr().err
    assert not file.exists()
    file.touch()
    assert main(["savepoint", "export", str(path), "--state", "text", "--to", str(file)]) == 1
    assert f"--to {file} exists; name a file that does not" in capsys.readouterr().err


def test_two_savepoints_are_compared_entry_by_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_savepoint(tmp_path / "1", STATES, groups())
    second = write_savepoint(tmp_path / "2", STATES, {**groups(5, 2, "z"), 9: [(0, key(9, "c"), i64(3))]})
    assert shown(capsys, "diff", first, first) == "the savepoints hold the same\n"
    assert shown(capsys, "diff", first, second, status=1) == (
        """\
operator 'OP', state 'count': 1 equal, 1 changed, 0 only in the first, 1 only in the second
  'a': 5 instead of 1
  'c' only in the second: 3
operator 'OP', state 'seen': 0 equal, 1 changed, 0 only in the first, 0 only in the second
  'a': ['z', 'y'] instead of ['x', 'y']
""".replace("OP", savepoints.open(first).operators[0].operator_id)
    )


def test_backends_parallelisms_and_formats_do_not_differ_in_content(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heap, rocks, native = (
        CASES / f"{name}" / "savepoint"
        for name in ("count_timers-heap3", "count_timers-rocks3z", "refuse_native-heap1")
    )
    # Their max parallelisms differ, so that keys are in other key groups.
    assert shown(capsys, "diff", heap, rocks) == "the savepoints hold the same\n"
    assert shown(capsys, "diff", rocks, native) == "the savepoints hold the same\n"


def test_states_of_other_kinds_and_types_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_savepoint(tmp_path / "1", [state("a", "VALUE", LONG), state("b", "VALUE", LONG)], {})
    second = write_savepoint(
        tmp_path / "2", [state("a", "REDUCING", LONG), state("b", "VALUE", simple("Int"))], {}
    )
    text = shown(capsys, "diff", first, second, status=1)
    assert "state 'a': not compared, as the kinds differ: VALUE and REDUCING" in text
    assert "state 'b': not compared, as the types differ" in text
    other = write_savepoint(tmp_path / "3", [state("a", "VALUE", LONG)], {}, uid="other")
    text = shown(capsys, "diff", first, other, status=1)
    assert "only in the first savepoint" in text
    assert "only in the second savepoint" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "PATH", "--key", "a"], "--key needs --state"),
        (["show", "PATH", "--limit", "-1"], "--limit is -1"),
        (
            ["show", "PATH", "--state", "other"],
            "there is no state 'other'; `flinkcore savepoint show DIR` lists all",
        ),
        (["show", "PATH", "--operator", "other"], "has no operator 'other'"),
        (
            ["export", "PATH", "--operator", "op", "--state", "other", "--to", "x.parquet"],
            "has no state 'other'",
        ),
        (["show", "NOTHING"], "is not a savepoint"),
    ],
)
def test_mistakes_are_reported(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_savepoint(tmp_path / "s", STATES, groups())
    places = {"PATH": str(path), "NOTHING": str(tmp_path / "nothing")}
    assert main(["savepoint", *(places.get(each, each) for each in arguments)]) == 1
    assert message in capsys.readouterr().err


def test_rocksdbs_own_format_is_refused_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "show", str(CASES / "refuse_native-rocks1f" / "savepoint")]) == 1
    assert "`flink savepoint --type canonical JOB_ID DIR`" in capsys.readouterr().err
