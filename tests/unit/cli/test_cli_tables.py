"""Tables of lakes as the logs of commands, and as the sides of `flinkcore compare`."""

import contextlib
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from equipment.iceberg_tables import catalog_at
from pyiceberg.catalog import Catalog
from pyiceberg.utils.config import Config

from flinkcore.cli import main
from flinkcore.cli.table_names import table_named
from flinkcore.datastream.graph.lake_tables import DeltaTable, IcebergTable
from flinkcore.errors import ConfigurationError

LOG = ["--timestamp", "ts", "--arrival", "ts"]
COUNTED = ["--key", "user", "--window", "tumbling:1s", "--aggregate", "n=count()", "--engine", "embedded"]
REPLAY = [*LOG, *COUNTED, "--quiet"]


def clicks(users: str) -> pa.Table:
    return pa.table({"ts": pa.array(range(len(users)), pa.int64()), "user": list(users)})


def overwritten(path: Path) -> Path:
    """A Delta table of two versions: three rows, which four others have replaced."""
    deltalake.write_deltalake(path, clicks("aab"))
    deltalake.write_deltalake(path, clicks("aaab"), mode="overwrite")
    return path


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """A catalog that the environment configures under the name `test`."""
    found = catalog_at(tmp_path)
    for name, value in {"URI": found.properties["uri"], "TYPE": "sql"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TEST__{name}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    load = pyiceberg.catalog.load_catalog
    with contextlib.ExitStack() as opened:
        opened.enter_context(contextlib.closing(found))
        monkeypatch.setattr(
            pyiceberg.catalog,
            "load_catalog",
            lambda name: opened.enter_context(contextlib.closing(load(name))),
        )
        yield found


@pytest.fixture
def iceberg(catalog: Catalog) -> Any:
    """An Iceberg table of the same two states."""
    table = catalog.create_table("logs.clicks", schema=clicks("a").schema)
    table.append(clicks("aab"))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "first").commit()
    table.overwrite(clicks("aaab"))
    return table


def printed(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main(list(map(str, arguments))) in (0, None)
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any, status: int = 1) -> str:
    assert main(list(map(str, arguments))) == status
    return capsys.readouterr().err


def test_a_delta_table_is_replayed_by_its_name_or_its_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "clicks"
    deltalake.write_deltalake(table, clicks("aab"))
    between = datetime.now(timezone.utc)
    deltalake.write_deltalake(table, clicks("aaab"), mode="overwrite")
    monkeypatch.chdir(tmp_path)
    for name, version, events in (
        (table, 1, 4),
        (f"{table}/", 1, 4),
        (f"delta:{table}", 1, 4),
        ("delta:clicks", 1, 4),
        (f"delta:{table}@0", 0, 3),
        (f"delta:{table.as_uri()}@0", 0, 3),
        (f"delta:{table}@{between.isoformat()}", 0, 3),
        (f"delta:{table}@{between.replace(tzinfo=None).isoformat()}", 0, 3),
    ):
        lines = printed(capsys, "replay", name, *REPLAY).splitlines()
        assert any(line.startswith(f"{events} events from 1 split") for line in lines)
        assert f"read as Delta table {table} at version {version}" in lines


def test_an_iceberg_table_is_replayed_by_its_name_in_a_catalog(
    iceberg: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        each.snapshot_id for each in iceberg.snapshots() if each.summary.operation.value == "append"
    )
    assert iceberg.current_snapshot().snapshot_id == second
    path = iceberg.location().removeprefix("file://")
    for name, shown, snapshot, events in (
        ("iceberg:test.logs.clicks", "test.logs.clicks", second, 4),
        (f"iceberg:test.logs.clicks@{first}", "test.logs.clicks", first, 3),
        ("iceberg:test.logs.clicks@first", "test.logs.clicks", first, 3),
        ("iceberg:test.logs.clicks@2999-01-01T00:00:00Z", "test.logs.clicks", second, 4),
        (f"iceberg:{path}@first", path, first, 3),
        (
            f"iceberg:{iceberg.metadata_location}",
            iceberg.metadata_location.removeprefix("file://"),
            second,
            4,
        ),
        (path, path, second, 4),
    ):
        lines = printed(capsys, "replay", name, *REPLAY).splitlines()
        assert any(line.startswith(f"{events} events from 1 split") for line in lines)
        assert f"read as Iceberg table {shown} at snapshot {snapshot}" in lines


def test_all_commands_of_logs_take_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = overwritten(tmp_path / "clicks")
    program = tmp_path / "job.py"
    program.write_text("def same(events):\n    return events\n")
    name, told = f"delta:{table}@0", f"read as Delta table {table} at version 0"
    assert f"3 events of 1 split, none late under any bound\n{told}\n" in printed(
        capsys, "lateness", name, *LOG
    )
    assert told in printed(capsys, "lateness", name, *LOG, "--lose", "1%").splitlines()
    why = ["why", name, *LOG, "--key", "user=a", "--window", "tumbling:1s", "--quiet"]
    assert f"  {told}" in printed(capsys, *why).splitlines()
    assert told in printed(capsys, "races", f"{program}:same", name, *LOG).splitlines()
    units = ["--timestamp-unit", "ms"]
    assert told in printed(capsys, "replay", name, *REPLAY, *units).splitlines()


def test_both_sides_of_a_comparison_may_be_tables(
    tmp_path: Path, iceberg: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    table = overwritten(tmp_path / "clicks")
    pq.write_table(clicks("aaab"), tmp_path / "replay.parquet")
    pq.write_table(clicks("aab"), tmp_path / "old.parquet")
    keys = ["--key", "ts"]
    for sink in (table, f"delta:{table}", f"delta:{table}@1", "iceberg:test.logs.clicks"):
        for replay in (tmp_path / "replay.parquet", table, "iceberg:test.logs.clicks"):
            text = printed(capsys, "compare", sink, replay, *keys)
            assert text.startswith(f"{sink} is read as ")
            assert "4 equal, 0 differences" in text
    text = printed(capsys, "compare", tmp_path / "old.parquet", f"delta:{table}@0", *keys)
    assert text.startswith(f"delta:{table}@0 is read as Delta table {table} at version 0\n3 rows ")
    assert main(["compare", str(tmp_path / "old.parquet"), str(table), *keys]) == 1
    for path in (table / "*.parquet", next(table.glob("*.parquet"))):
        message = refused(capsys, "compare", path, tmp_path / "old.parquet", *keys, status=2)
        assert "whose files still hold rows that were removed" in message
        assert f"delta:{table} in commands" in message


def test_a_table_is_a_log_of_its_own_and_has_no_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = overwritten(tmp_path / "clicks")
    name = f"delta:{table}"
    assert "Name one table and nothing besides it" in refused(capsys, "replay", name, name, *REPLAY)
    for option in (["--format", "parquet"], ["--format-option", "int96_unit=ns"]):
        assert "are of files, and not of a table" in refused(capsys, "replay", name, *REPLAY, *option)
        assert "Leave them out to read the table" in refused(capsys, "replay", table, *REPLAY, *option)
    assert "files of a table are not splits" in refused(capsys, "replay", name, *REPLAY, "--split-per-file")
    files = sorted(table.glob("*.parquet"))
    lines = printed(capsys, "replay", *files, *REPLAY, "--format", "parquet").splitlines()
    assert any(line.startswith("7 events from 1 split") for line in lines)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("delta:", "'delta:' is not the name of a table. Write delta:PATH[@VERSION] or iceberg:CATALOG."),
        ("delta:@3", "'delta:@3' is not the name of a table"),
        ("delta:/lake/clicks@", "is not the name of a table"),
        ("delta://lake/clicks", "'delta://lake/clicks' is not the name of a table"),
        ("iceberg:", "is not the name of a table"),
        ("iceberg:clicks", "does not name a catalog, a namespace and a table. Write iceberg:CATALOG."),
        ("iceberg:logs.clicks", "'iceberg:logs.clicks' does not name a catalog, a namespace and a table"),
        ("iceberg:prod..clicks", "does not name a catalog"),
        ("iceberg:prod.logs.@3", "does not name a catalog"),
        ("delta:/no/such/table", "Delta table /no/such/table cannot be read: "),
        ("iceberg:/no/such/table", "Iceberg table /no/such/table cannot be opened: "),
        ("iceberg:unknown.logs.clicks", "Iceberg table unknown.logs.clicks cannot be opened: "),
    ],
)
def test_names_that_name_no_table_are_refused(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "replay", name, *REPLAY)
    assert message in refused(capsys, "compare", name, name, "--key", "user", status=2)


def test_versions_and_snapshots_that_are_not_there_are_named(
    tmp_path: Path, iceberg: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    table = overwritten(tmp_path / "clicks")
    for version, message in (
        ("7", f"Delta table {table} at version 7 cannot be read: "),
        ("latest", "'latest' is not a version of a table. Give its number, or a time such as "),
        ("-1", "'-1' is not a version of a table"),
    ):
        assert message in refused(capsys, "replay", f"delta:{table}@{version}", *REPLAY)
    for snapshot in ("7", "last", "1970-01-02T00:00:00"):
        message = refused(capsys, "replay", f"iceberg:test.logs.clicks@{snapshot}", *REPLAY)
        assert "flinkcore: Iceberg table test.logs.clicks at snapshot " in message
        assert "; snapshots: " in message
        assert "branches and tags: main, first" in message or "branches and tags: first, main" in message
    assert "test.logs.nothing cannot be opened" in refused(
        capsys, "replay", "iceberg:test.logs.nothing", *REPLAY
    )


@pytest.mark.parametrize(
    ("name", "location", "version"),
    [
        ("delta:/lake/clicks", "/lake/clicks", None),
        ("delta:/lake/clicks@12", "/lake/clicks", 12),
        ("delta:/lake/a@b/clicks", "/lake/a@b/clicks", None),
        ("delta:/lake/clicks@home/", "/lake/clicks@home", None),
        ("delta:s3://lake/clicks@2026-05-04T12:00:00Z", "s3://lake/clicks", "2026-05-04T12:00:00Z"),
        ("delta:abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t", None),
        ("delta:abfss://c@a.dfs.core.windows.net/t@3", "abfss://c@a.dfs.core.windows.net/t", 3),
    ],
)
def test_a_version_follows_the_last_at_sign_of_the_last_part(
    name: str, location: str, version: int | str | None
) -> None:
    table = table_named(name)
    assert isinstance(table, DeltaTable)
    assert (table.table, table.version) == (location, version)


def test_snapshots_are_ids_times_or_names() -> None:
    time = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
    for text, snapshot in (
        ("12", 12),
        ("main", "main"),
        ("Tuesday", "Tuesday"),
        ("2026-05-04", "2026-05-04"),
        ("2026-05-04T12:00:00Z", time),
        ("2026-05-04T14:00:00+02:00", time),
    ):
        table = table_named(f"iceberg:prod.logs.web.clicks@{text}")
        assert isinstance(table, IcebergTable)
        assert (table.catalog, table.table, table.snapshot) == ("prod", "logs.web.clicks", snapshot)


@pytest.mark.parametrize(
    "path", ["clicks", "/lake/delta:x", "s3://lake/x", "delta", "hdfs:x", "DELTA:x", "x/iceberg:y"]
)
def test_other_texts_are_paths(path: str) -> None:
    assert table_named(path) is None


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:

    for library, name, extra in (
        ("deltalake", "delta:/x", "delta"),
        ("pyiceberg", "iceberg:a.b.c", "iceberg"),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ConfigurationError, match=rf"{name} needs .* pip install 'flinkcore\[{extra}\]'"):
            table_named(name)


@pytest.mark.parametrize("command", ["replay", "lateness", "why", "races", "compare"])
def test_help_says_how_tables_are_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = "".join(capsys.readouterr().out.split())
    assert "itsdirectory,delta:PATH[@VERSION]oriceberg:CATALOG.NAMESPACE.TABLE[@SNAPSHOT]" in text


def written(log: Path, *arguments: Any) -> list[str]:
    return list(map(str, ("replay", log, *REPLAY, *arguments)))


def test_results_are_written_into_a_delta_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, table = tmp_path / "log.parquet", tmp_path / "counts"
    pq.write_table(clicks("aab"), log)
    monkeypatch.chdir(tmp_path)
    assert main(written(log, "--output", "delta:counts", "--partition-by", "user")) in (0, None)
    assert deltalake.DeltaTable(table).metadata().partition_columns == ["user"]
    assert main(written(log, "--output", f"delta:{table}")) == 1
    assert main(written(log, "--output", f"delta:{table}", "--mode", "append")) in (0, None)
    assert sorted(deltalake.DeltaTable(table).to_pyarrow_table()["n"].to_pylist()) == [1, 1, 2, 2]
    pq.write_table(clicks("aaa"), log)
    assert main(written(log, "--output", "delta:counts", "--mode", "overwrite_partitions")) in (0, None)
    assert sorted(deltalake.DeltaTable(table).to_pyarrow_table()["n"].to_pylist()) == [1, 1, 3]
    assert not (tmp_path / "delta:counts").exists()


def test_results_are_written_into_an_iceberg_table(tmp_path: Path, catalog: Catalog) -> None:
    log, results = tmp_path / "log.parquet", tmp_path / "results"
    pq.write_table(clicks("aab"), log)
    assert main(written(log, "--output", results)) in (0, None)
    catalog.create_table("logs.counts", schema=pq.read_table(results).schema)
    for mode, expected in (("append", [1, 2]), ("append", [1, 1, 2, 2]), ("overwrite", [1, 2])):
        assert main(written(log, "--output", "iceberg:test.logs.counts", "--mode", mode)) in (0, None)
        found = catalog.load_table("logs.counts").scan().to_arrow()
        assert sorted(found["n"].to_pylist()) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "delta:counts@3"], "names a version of the table, and results go into its latest one"),
        (["--output", "iceberg:c.n.t@main"], "names a version of the table"),
        (
            ["--output", "delta:counts", "--late-output", "late"],
            "a table, which takes the results only. Leave out",
        ),
        (
            ["--output", "out", "--late-output", "delta:late"],
            "--late-output delta:late names a table, and this",
        ),
        (
            ["--output", "iceberg:/lake/counts", "--mode", "append"],
            "is a path, and results are committed through",
        ),
        (["--output", "iceberg:c.n.t"], "Give --mode append, overwrite or overwrite_partitions"),
        (
            ["--output", "iceberg:c.n.t", "--mode", "append", "--partition-by", "user"],
            "partitions of its own",
        ),
        (
            ["--output", "iceberg:counts", "--mode", "append"],
            "does not name a catalog, a namespace and a table",
        ),
        (
            ["--output", "out", "--mode", "overwrite_partitions"],
            "is for tables, and --output out is a directory",
        ),
    ],
)
def test_options_that_do_not_go_with_a_table_as_output_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(clicks("aab"), "log.parquet")
    assert message in refused(capsys, *written(Path("log.parquet"), *arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_commands_that_write_files_refuse_the_name_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(clicks("aab"), "log.parquet")
    why = ["why", "log.parquet", *LOG, "--key", "user=a", "--window", "tumbling:1s", "--quiet"]
    for command in (["lateness", "log.parquet", *LOG], why, ["demo", "--engine", "embedded"]):
        message = refused(capsys, *command, "--output", "delta:counts")
        assert "--output delta:counts names a table, and this option takes a path" in message
    both = ["compare", "log.parquet", "log.parquet", "--key", "ts", "--output", "iceberg:c.n.t"]
    assert "--output iceberg:c.n.t names a table" in refused(capsys, *both, status=2)
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_files_beside_those_of_a_table_are_refused_with_the_option_that_writes_into_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, log = overwritten(tmp_path / "clicks"), tmp_path / "log.parquet"
    pq.write_table(clicks("aab"), log)
    assert "(in commands: --output delta:PATH" in refused(capsys, *written(log, "--output", table))
