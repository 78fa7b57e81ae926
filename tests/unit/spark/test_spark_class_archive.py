"""Archives of Spark's classes."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from equipment.spark_sessions import QUICK_JAVA

from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.spark import configure_spark, ensure_java
from flinkcore.spark.sessions import class_archive
from flinkcore.spark.sessions.class_archive import (
    JVM_OPTIONS,
    archive_options,
    archive_path,
    archive_written,
)


class Builder:
    def __init__(self, **options: str) -> None:
        self._options = dict(options)

    def config(self, name: str, value: str) -> "Builder":
        self._options[name] = value
        return self


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that says that it is one, with an archive of its own classes."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"21\"' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "jdk" / "lib" / "server").mkdir(parents=True)
    (tmp_path / "jdk" / "lib" / "server" / "classes.jsa").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "the cache"))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return program


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_a_session_is_built_with_the_archive_that_was_written(java: Path) -> None:
    assert JVM_OPTIONS not in configure_spark(Builder())._options
    write(archive_path(java))
    assert f"'-XX:SharedArchiveFile={archive_path(java)}'" in configure_spark(Builder())._options[JVM_OPTIONS]


def test_options_of_the_users_for_the_driver_stay(java: Path) -> None:
    write(archive_path(java))
    assert configure_spark(Builder(**{JVM_OPTIONS: "-Dx=y"}))._options[JVM_OPTIONS] == "-Dx=y"


def test_a_remote_session_has_no_archive(java: Path) -> None:
    write(archive_path(java))
    assert JVM_OPTIONS not in configure_spark(Builder(**{"spark.remote": "sc://host"}))._options


def test_another_java_and_another_spark_have_other_archives(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(archive_path(java))
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="21.0.1"')
    assert archive_options(java) is None
    write(archive_path(java))
    assert archive_options(java) is not None
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert archive_options(java) is None


def test_a_java_without_an_archive_of_its_own_is_refused(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "SparkContext", SimpleNamespace(_gateway=None))
    (java.parents[1] / "lib" / "server" / "classes.jsa").unlink()
    with pytest.raises(ConfigurationError, match=r"jdk/bin/java has no archive of its own classes"):
        archive_written(java, Builder()).__enter__()


def test_a_running_spark_is_refused(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "SparkContext", SimpleNamespace(_gateway=object()))
    with pytest.raises(ConfigurationError, match="write the archive in a new process"):
        archive_written(java, Builder()).__enter__()


def test_a_cache_that_cannot_be_written_is_named(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "SparkContext", SimpleNamespace(_gateway=None))
    (tmp_path / "the cache").touch()
    with pytest.raises(SourceError, match=r"the archive cannot be written to .*the cache/flinkcore/spark-"):
        archive_written(java, Builder()).__enter__()


START = """
import sys
from pyspark.sql import SparkSession
from flinkcore.spark import configure_spark
options = "-Xlog:class+load:file=" + sys.argv[1]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = configure_spark(builder.config("spark.driver.extraJavaOptions", options)).getOrCreate()
assert spark.range(3).count() == 3
spark.stop()
"""


@pytest.mark.skipif(
    os.environ.get("FLINKCORE_TEST_SPARK_ARCHIVE") != "1",
    reason="set FLINKCORE_TEST_SPARK_ARCHIVE=1 to start three Javas, and have one write an archive",
)
def test_spark_takes_its_classes_from_the_archive_that_the_command_writes(tmp_path: Path) -> None:
    if not list(ensure_java().resolve().parents[1].glob("lib/server/classes*.jsa")):
        pytest.skip("this Java has no archive of its own classes")
    environment: dict[str, Any] = os.environ | QUICK_JAVA | {"XDG_CACHE_HOME": str(tmp_path / "the cache")}
    command = [sys.executable, "-m", "flinkcore", "spark-archive"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (archive,) = (tmp_path / "the cache" / "flinkcore").iterdir()
    assert f"{archive}: " in done.stdout
    try:
        subprocess.run(
            [sys.executable, "-c", START, str(tmp_path / "classes")],
            env=environment,
            check=True,
            capture_output=True,
        )
    finally:
        shutil.rmtree(archive.parent)
    loaded = (tmp_path / "classes").read_text().splitlines()
    of_spark = [line for line in loaded if " org.apache.spark." in line]
    archived = [line for line in of_spark if "source: shared objects file (top)" in line]
    assert len(archived) > len(of_spark) / 2  # the others are lambdas
