"""A process of real Flink that runs jobs of SQL, stops them with savepoints, and restores them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from flinkcore.sql.planner.flink_process import FlinkLibraries, required_libraries

SOURCE: Final = Path(__file__).parents[1] / "recorders" / "sql_savepoints" / "SqlJob.java"
_OPENED: Final = ("java.util", "java.lang", "java.time", "java.math", "java.nio")


def can_run() -> bool:
    """Return whether Flink's libraries and a JDK are there."""
    return FlinkLibraries.found() is not None and shutil.which("javac") is not None


class FlinkSqlJobs:
    """Runs jobs one after the other.

    Parameters
    ----------
    folder : path
        Directory for classes, savepoints and logs of the process.
    """

    def __init__(self, folder: Path) -> None:
        jars = ":".join(map(str, required_libraries().jars))
        services = folder / "classes" / "META-INF" / "services"
        services.mkdir(parents=True)
        (services / "org.apache.flink.table.factories.Factory").write_text("SqlJob$Lines\n")
        classes = str(folder / "classes")
        subprocess.run(
            ["javac", "-nowarn", "-Xlint:none", "-cp", jars, "-d", classes, str(SOURCE)], check=True
        )
        (folder / "log4j2.properties").write_text("rootLogger.level = OFF\n")
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1500m", "-Duser.timezone=UTC"]
        options.append(f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}")
        options += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        self._process = subprocess.Popen(
            ["java", *options, "-cp", f"{classes}:{jars}", "SqlJob", str(folder / "scratch")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        """Return the answer to a question; the fields of both are those of `SqlJob`.

        Raises
        ------
        RuntimeError
            If the job failed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)
