"""Scripts of SQL without Flink: cached plans, errors, and what is missing."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jobs.sql_scenarios import golden

from flinkcore.cli import main
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, SqlError, UnsupportedOperationError
from flinkcore.sql.planner import flink_process, plan_cache, planned_script
from flinkcore.sql.planner.flink_process import FlinkLibraries, FlinkProcess
from flinkcore.sql.planner.plan_cache import cache_directory, cached_answer, keep_answer
from flinkcore.sql.planner.planned_script import planned
from flinkcore.sql.planner.statements import statements_of

SCRIPT = (
    "CREATE TABLE f (k STRING);\nSELECT * FROM f;\nSELECT 2;\nINSERT INTO g SELECT 1;\nINSERT INTO g SELECT 3"
)


class Planner:
    """Stands for Flink: gives an answer, and remembers the requests."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.given = answer
        self.requests: list[Any] = []

    def answer(
        self, libraries: FlinkLibraries, statements: Any, settings: Any, functions: Any
    ) -> dict[str, Any]:
        self.requests.append((libraries.version, statements, settings))
        return self.given


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of Flink without a planner, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FLINK_HOME", str(tmp_path / "flink"))
    (tmp_path / "flink" / "lib").mkdir(parents=True)
    (tmp_path / "flink" / "lib" / "flink-dist-2.3.0.jar").write_bytes(b"")
    return tmp_path / "flink"


def planner(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> Planner:
    found = Planner(answer)
    monkeypatch.setattr(planned_script, "PROCESS", found)
    return found


def step(statement: int, is_query: bool, **settings: str) -> dict[str, Any]:
    plan = golden("edges-fire_one_phase")["plan"]
    return {"statement": statement, "is_query": is_query, "settings": settings, "plan": plan}


STEPS = {"steps": [step(1, True), step(2, True), step(3, False), step(4, False)]}
ROWS = pa.table({"k": ["a", "b"], "v": [1, 2], "ts": ["2024-01-01 00:00:01", "2024-01-01 00:00:03"]})


def test_a_script_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    flink = planner(monkeypatch, STEPS)
    for _ in range(2):
        jobs = planned(statements_of(SCRIPT), {"a": "b"})
        assert [(job.statement.line, job.is_query) for job in jobs] == [
            (2, True),
            (3, True),
            (4, False),
            (5, False),
        ]
    assert [request[2] for request in flink.requests] == [{"a": "b"}]


def test_other_settings_texts_and_versions_are_planned_again(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    flink = planner(monkeypatch, STEPS)
    planned(statements_of(SCRIPT), {})
    planned(statements_of(SCRIPT), {"a": "b"})
    planned(statements_of(SCRIPT + " "), {})  # the same statements
    planned(statements_of(SCRIPT + " -- comment"), {})
    planned(statements_of(SCRIPT.replace("3", "4")), {})
    (home / "lib" / "flink-dist-2.3.0.jar").rename(home / "lib" / "flink-dist-2.3.1.jar")
    planned(statements_of(SCRIPT), {})
    assert [request[0] for request in flink.requests] == ["2.3.0"] * 3 + ["2.3.1"]


def test_a_planned_script_needs_no_flink(monkeypatch: pytest.MonkeyPatch) -> None:
    planner(monkeypatch, STEPS)
    planned(statements_of(SCRIPT), {})
    monkeypatch.setattr(FlinkLibraries, "found", lambda: None)
    assert len(planned(statements_of(SCRIPT), {})) == 4


def test_without_flink_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLINK_HOME")
    monkeypatch.setattr(flink_process, "PACKAGE", "no-such-package-of-flink")
    with pytest.raises(ConfigurationError, match=r"pip install 'flinkcore\[sql\]'"):
        planned(statements_of("SELECT 1"), {})


def test_a_wrong_home_of_flink_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLINK_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"has no lib/flink-dist-\*\.jar"):
        planned(statements_of("SELECT 1"), {})


def test_without_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flink_process, "installed_java", lambda: None)
    monkeypatch.setattr(flink_process, "packaged_java", lambda: None)
    monkeypatch.setattr(planned_script, "PROCESS", FlinkProcess())
    with pytest.raises(
        ConfigurationError, match=r"needs Java 17 or later, and there is no Java: pip install"
    ):
        planned(statements_of("SELECT 1"), {})


def java_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setattr(flink_process, "required_java", lambda: java)
    monkeypatch.setattr(planned_script, "PROCESS", FlinkProcess())


def test_a_planner_that_ends_is_an_error_with_its_first_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java_of(monkeypatch, tmp_path, "echo 'WARNING: x' >&2; echo 'Could not reserve memory' >&2; exit 3")
    with pytest.raises(ConfigurationError, match="ended with code 3: Could not reserve memory"):
        planned(statements_of("SELECT 1"), {})


def test_what_the_virtual_machine_prints_before_it_ends_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java_of(
        monkeypatch, tmp_path, "echo 'Error during initialization of VM'; echo 'No space for heap'; exit 1"
    )
    with pytest.raises(ConfigurationError, match=r"code 1: Error during .* of VM: No space for heap.* 512m"):
        planned(statements_of("SELECT 1"), {})


def test_lines_of_the_virtual_machine_before_an_answer_are_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java_of(monkeypatch, tmp_path, "echo 'VM warning: x'; read line; echo '{\"steps\": []}'")
    assert planned(statements_of("SELECT 1"), {}) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_leaves_the_planner_to_its_parent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java_of(monkeypatch, tmp_path, 'while read line; do echo "$line"; done')
    process, libraries = flink_process.PROCESS, FlinkLibraries.found()
    assert libraries is not None
    try:
        process.answer(libraries, ["SELECT 1"], {})
        directory = process._directory
        assert directory is not None
        with process._lock:  # as if another thread were planning
            child = os.fork()
            if child == 0:
                code = 1
                signal.alarm(20)  # ends a child that waits for the lock
                try:
                    process.close()  # as at exit
                    code = (
                        0 if process.answer(libraries, ["SELECT 2"], {})["statements"] == ["SELECT 2"] else 2
                    )
                    process.close()
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert os.path.exists(directory)
        assert process.answer(libraries, ["SELECT 3"], {})["statements"] == ["SELECT 3"]
        assert process._directory == directory
    finally:
        process.close()


def test_a_process_answers_several_scripts_until_it_is_idle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java_of(
        monkeypatch, tmp_path, f'echo started >> {tmp_path}/starts\nwhile read line; do echo "$line"; done'
    )
    process = FlinkProcess(idle_seconds=600)
    libraries = FlinkLibraries.found()
    assert libraries is not None
    for text in ("SELECT 1", "SELECT 2"):
        given = {"statements": [text], "settings": {}, "functions": []}
        assert process.answer(libraries, [text], {}) == given
    assert process._process is not None
    assert process._directory is not None
    running, directory = process._process, process._directory
    process.close()
    assert running.returncode is not None
    assert not os.path.exists(directory)
    process.idle_seconds = 0.01
    process.answer(libraries, ["SELECT 1"], {})
    assert process._timer is not None
    process._timer.join()
    assert process._process is None
    assert (tmp_path / "starts").read_text() == "started\n" * 2


@pytest.mark.parametrize(
    ("messages", "shown", "place"),
    [
        (
            [
                "SQL validation failed. From line 2, column 15 to line 2, column 16: Object 'x' not found",
                "From line 2, column 15 to line 2, column 16: Object 'x' not found",
                "Object 'x' not found",
            ],
            "at line 2, column 15: Object 'x' not found. It reads 'SELECT \\* FROM f'",
            (2, 15),
        ),
        (
            [
                "SQL parse failed. Incorrect syntax near the keyword 'FROM' at line 2, column 3.\nWas expecting one"
            ],
            "at line 2, column 3: Incorrect syntax near the keyword 'FROM'",
            (2, 3),
        ),
        (
            ["The sink does not take changes", "java.x"],
            "at line 2, column 1: The sink does not take changes",
            (2, 1),
        ),
        (["x" * 1000], r"x{497}\.\.\.", (2, 1)),
    ],
)
def test_what_flink_refuses_is_an_error_with_its_place(
    monkeypatch: pytest.MonkeyPatch, messages: list[str], shown: str, place: tuple[int, int]
) -> None:
    answer = {
        "statement": 1,
        "messages": messages,
        "failure": "org.apache.flink.table.api.ValidationException",
    }
    planner(monkeypatch, answer)
    with pytest.raises(SqlError, match=shown) as caught:
        planned(statements_of(SCRIPT), {})
    assert (caught.value.line, caught.value.column) == place
    assert not cache_directory().exists()


@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("SHOW TABLES", "Leave it out"),
        ("COMPILE PLAN 'p.json' FOR INSERT INTO s SELECT 1", "Write its INSERT INTO alone"),
        ("EXECUTE PLAN 'p.json'", "Give the plan in place of the script"),
    ],
)
def test_a_statement_that_scripts_lack_is_refused(
    statement: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = "java.lang.UnsupportedOperationException"
    planner(monkeypatch, {"statement": 0, "messages": ["ShowTablesOperation"], "failure": failure})
    with pytest.raises(
        UnsupportedOperationError, match=f"line 1: the statement .* is not supported.*{remedy}"
    ):
        planned(statements_of(f"{statement}; SELECT 1"), {})


def test_a_script_without_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    planner(monkeypatch, {"steps": []})
    with pytest.raises(ConfigurationError, match="neither a query nor an INSERT INTO"):
        StreamExecutionEnvironment.get_execution_environment().from_sql("CREATE TABLE f (k STRING)")


def test_a_damaged_entry_of_the_cache_is_not_taken() -> None:
    keep_answer("k", "2.3.0", {"steps": []})
    assert cached_answer("k", "2.3.0") == {"steps": []}
    (cache_directory() / "k.json").write_text("{")
    assert cached_answer("k", "2.3.0") is None


def test_the_cache_forgets_the_answers_that_were_taken_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_cache, "MOST_ENTRIES", 3)
    for number in range(3):
        keep_answer(f"k{number}", "2.3.0", {"steps": [number]})
        os.utime(cache_directory() / f"k{number}.json", (number, number))
    assert cached_answer("k0", "2.3.0") == {"steps": [0]}
    keep_answer("k3", "2.3.0", {"steps": [3]})
    assert [cached_answer(f"k{number}", "2.3.0") for number in range(4)] == [
        {"steps": [0]},
        None,
        {"steps": [2]},
        {"steps": [3]},
    ]


def test_a_cache_that_cannot_be_written_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep_answer("k", "2.3.0", {"steps": []})
    assert cached_answer("k", "2.3.0") is None


def test_a_script_is_planned_where_the_user_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    planner(monkeypatch, STEPS)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert len(planned(statements_of(SCRIPT), {})) == 4


def test_settings_that_are_not_texts_are_refused_before_a_script_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flink = planner(monkeypatch, STEPS)
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ConfigurationError, match=r"'parallelism\.default' is 4\. Write '4'"):
        environment.execute_sql(SCRIPT, {"f": ROWS}, settings={"parallelism.default": 4})  # type: ignore[dict-item]
    assert not flink.requests


def test_queries_are_numbered_and_insertions_into_a_sink_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    planner(monkeypatch, STEPS)
    environment = StreamExecutionEnvironment.get_execution_environment()
    results = environment.execute_sql(
        SCRIPT, {"f": ROWS}, settings={"pipeline.auto-watermark-interval": "0 ms"}
    )
    counts = {name: result.to_arrow().num_rows for name, result in results.items()}
    assert counts == {"select": 2, "select_2": 2, "sink": 4}
    one = environment.from_sql(SCRIPT, {"f": ROWS}, sink="select_2").to_arrow()
    assert one.num_rows == 2
    with pytest.raises(
        ConfigurationError, match="the script has the sinks select, select_2, sink, and sink= is None"
    ):
        environment.from_sql(SCRIPT, {"f": ROWS})


def test_tables_that_share_a_short_name_are_sinks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [step(number, False) for number in (1, 2, 3, 4)]
    for each, database in zip(steps, "ppqq", strict=True):
        each["plan"] = json.loads(json.dumps(each["plan"]))
        each["plan"]["nodes"][-1]["dynamicTableSink"]["table"]["identifier"] = f"`c`.`{database}`.`o`"
    planner(monkeypatch, {"steps": [*steps, step(2, True)]})
    results = StreamExecutionEnvironment.get_execution_environment().execute_sql(SCRIPT, {"f": ROWS})
    counts = {name: result.to_arrow().num_rows for name, result in results.items()}
    assert counts == {"c.p.o": 4, "c.q.o": 4, "select": 2}


def with_options(side: str, **options: str) -> dict[str, Any]:
    """Return an answer with one insertion, whose plan has other options of its source or sink."""
    found = step(3, False)
    plan = json.loads(json.dumps(found["plan"]))
    for node in plan["nodes"]:
        if side in node:
            node[side]["table"]["resolvedTable"]["options"] = options
    return {"steps": [found | {"plan": plan}]}


def test_a_table_of_files_needs_no_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "f.parquet")
    options = {"connector": "filesystem", "path": str(tmp_path / "f.parquet"), "format": "parquet"}
    planner(monkeypatch, with_options("scanTableSource", **options))
    environment = StreamExecutionEnvironment.get_execution_environment()
    assert environment.from_sql(SCRIPT).to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("connector", "shown"),
    [
        ("kafka", "of the connector kafka, which is replaced"),
        ("datagen", "of the connector datagen, whose rows"),
    ],
)
def test_a_table_of_another_connector_wants_a_log(
    monkeypatch: pytest.MonkeyPatch, connector: str, shown: str
) -> None:
    planner(monkeypatch, with_options("scanTableSource", connector=connector))
    with pytest.raises(ConfigurationError, match=f"reads the table f {shown}.* Give tables="):
        StreamExecutionEnvironment.get_execution_environment().from_sql(SCRIPT)


def test_a_sink_of_files_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path / "out"), "format": "parquet"}
    planner(monkeypatch, with_options("dynamicTableSink", **options))
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.execute_sql(SCRIPT, {"f": ROWS})
    assert pq.read_table(tmp_path / "out").num_rows == 2
    with pytest.raises(ConfigurationError):
        environment.execute_sql(SCRIPT, {"f": ROWS})  # the directory has files
    environment.execute_sql(SCRIPT, {"f": ROWS}, mode="overwrite")
    environment.execute_sql(SCRIPT, {"f": ROWS}, {"sink": tmp_path / "other"})
    assert pq.read_table(tmp_path / "other").num_rows == 2


def test_a_sink_of_files_with_another_format_is_refused_before_the_job_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path / "out"), "format": "csv"}
    planner(monkeypatch, with_options("dynamicTableSink", **options))
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match="the table sink has the format 'csv'"):
        environment.execute_sql(SCRIPT, {"f": ROWS})
    assert not (tmp_path / "out").exists()


def test_a_sink_print_prints_rows_with_their_kinds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planner(
        monkeypatch, with_options("dynamicTableSink", **{"connector": "print", "print-identifier": "out"})
    )
    StreamExecutionEnvironment.get_execution_environment().execute_sql(SCRIPT, {"f": ROWS})
    lines = sorted(capsys.readouterr().out.splitlines())
    assert len(lines) == 2
    assert lines[0].startswith("out> +I[a, ")


def test_a_sink_blackhole_runs_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    planner(monkeypatch, with_options("dynamicTableSink", connector="blackhole"))
    results = StreamExecutionEnvironment.get_execution_environment().execute_sql(SCRIPT, {"f": ROWS})
    assert results["sink"].report.results == 2


def test_the_command_runs_all_of_a_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planner(monkeypatch, STEPS)
    (tmp_path / "job.sql").write_text(SCRIPT)
    pq.write_table(ROWS, tmp_path / "f.parquet")
    command = ["sql", str(tmp_path / "job.sql"), "--table", f"f={tmp_path}/f.parquet", "--quiet"]
    assert main([*command, "--into", str(tmp_path / "out")]) == 0
    assert pq.read_table(tmp_path / "out" / "select_2").num_rows == 2
    assert pq.read_table(tmp_path / "out" / "sink").num_rows == 4
    assert main([*command, "--sink", "select", "--into", str(tmp_path / "one")]) == 0
    assert pq.read_table(tmp_path / "one").num_rows == 2
    capsys.readouterr()
    assert main([*command, "--sink", "other"]) != 0
    assert "--sink is other, and the sinks are select, select_2, sink" in capsys.readouterr().err
    assert main([*command, "--table", f"g={tmp_path}/f.parquet"]) != 0
    assert "a log is given for the table g, which is not read" in capsys.readouterr().err
