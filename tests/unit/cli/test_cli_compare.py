"""`flinkcore compare`, and the column of `flinkcore replay` for when results were emitted."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore.cli import main
from flinkcore.examples.flights import LOG


def written(path: Path, numbers: list[int]) -> str:
    path.mkdir()
    for place, number in enumerate(numbers):  # as tasks do: each its file
        pq.write_table(pa.table({"user": [place], "n": [number]}), path / f"part-{place}.parquet")
    return str(path)


def test_sinks_that_are_equal_have_the_status_0_and_others_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink, replay = written(tmp_path / "sink", [1, 2, 3]), written(tmp_path / "replay", [1, 2, 4])
    assert main(["compare", sink, sink, "--key", "user", "--appends"]) == 0
    assert "3 rows of a sink that keeps all rows" in capsys.readouterr().out
    output = tmp_path / "differences.parquet"
    assert main(["compare", sink, replay, "--key", "user", "--output", str(output)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "3 rows of a sink that keeps the last row of a key, 3 rows of the replay: 2 equal, 1 difference",
        "compared by user: n",
        "          1 another value: of a result that both sides have",
        "            user=2: sink n 3; replay n 4",
        f"differences: {output}",
    ]
    assert pq.read_table(output).column("by").to_pylist() == [{"n": 1.0}]
    assert (
        main(["compare", sink, replay, "--key", "user", "--abs-tol", "1"]) == 1
    )  # integers are equal or not


def test_files_of_partitions_and_globs_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"user": ["ann"], "n": [day]}), tmp_path / f"day={day}" / "part-0.parquet")
    pq.write_table(
        pa.table({"user": ["ann", "ann"], "day": [1, 2], "n": [1, 3]}), tmp_path / "replay.parquet"
    )
    for sink in (tmp_path / "day=*", tmp_path / "day=*" / "*.parquet"):
        keys = ["--key", "user", "--key", "day"]
        assert main(["compare", str(sink), str(tmp_path / "replay.parquet"), *keys]) == 1
        assert "user=ann, day=2: sink n 2; replay n 3" in capsys.readouterr().out
    (tmp_path / "sink.csv").write_text("user,n\nann,1\n")
    assert (
        main(["compare", str(tmp_path / "sink.csv"), str(tmp_path / "replay.parquet"), "--key", "user"]) == 2
    )
    told = f"flinkcore: {tmp_path / 'sink.csv'} cannot be read as Parquet: "
    assert capsys.readouterr().err.startswith(told)


def test_timestamps_in_96_bits_are_those_that_were_written(tmp_path: Path) -> None:
    rows = pa.table({"user": ["a"], "at": pa.array([32503680000_000000], pa.timestamp("us"))})
    pq.write_table(rows, tmp_path / "sink.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(rows, tmp_path / "replay.parquet")
    assert (
        main(["compare", str(tmp_path / "sink.parquet"), str(tmp_path / "replay.parquet"), "--key", "user"])
        == 0
    )


def test_errors_are_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = written(tmp_path / "sink", [1])
    assert main(["compare", sink, sink, "--key", "id"]) == 2
    assert capsys.readouterr().err.startswith(
        "flinkcore: the rows of the sink (expected) have no column 'id'"
    )
    assert main(["compare", sink, str(tmp_path / "none"), "--key", "user"]) == 2
    assert capsys.readouterr().err.strip().endswith("none' does not exist")
    for output, message in ((sink, "exists; name a file that does not"), ("no/x.parquet", "no directory no")):
        assert main(["compare", "none", sink, "--key", "user", "--output", output]) == 2
        assert message in capsys.readouterr().err


def test_a_replay_says_when_its_results_were_emitted(tmp_path: Path) -> None:
    arguments = [
        "replay",
        str(LOG),
        "--timestamp",
        "date",
        "--arrival",
        "arrival",
        "--key",
        "origin",
        "--quiet",
    ]
    arguments += ["--window", "tumbling:1h", "--aggregate", "n=count()", "--engine", "embedded"]
    assert main([*arguments, "--output", str(tmp_path / "results"), "--emitted-at", "known"]) == 0
    assert pq.read_table(tmp_path / "results").column_names[-1] == "known"
