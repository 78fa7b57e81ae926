"""A standalone cluster of Spark on this machine, whose workers run an interpreter that has no flinkcore."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from equipment.spark_sessions import QUICK_JAVA, session_of

DEADLINE_SECONDS = 120


def bare_interpreter(folder: Path) -> Path:
    """An interpreter of a virtual environment with all packages of this one but flinkcore."""
    import pyarrow

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = folder / "packages"
    packages.mkdir()
    for path in Path(pyarrow.__file__).parents[1].iterdir():
        if not re.match(r"_*(editable_*)?flinkcore|.*\.pth$", path.name):
            (packages / path.name).symlink_to(path)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "packages.pth").write_text(str(packages))
    return folder / "bin" / "python"


def site_packages_of(interpreter: Path) -> Path:
    """Where packages of a bare interpreter go."""
    (found,) = interpreter.parents[1].glob("lib/python*/site-packages")
    return found


@dataclass(frozen=True)
class StandaloneCluster:
    """A master and its workers, of one core each.

    Attributes
    ----------
    folder : Path
        Of logs, and of the workers' own folders.
    master : str
        Its URL.
    """

    folder: Path
    master: str

    @classmethod
    @contextmanager
    def started(cls, folder: Path, workers: int = 2) -> Iterator["StandaloneCluster"]:
        """A cluster that ends with the block."""
        from flinkcore.spark import ensure_java

        ensure_java()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cluster = cls(folder, f"spark://127.0.0.1:{port}")
        with ExitStack() as running:
            running.enter_context(cluster._process("master", "master.Master", "--port", str(port)))
            for number in range(workers):
                running.enter_context(cluster._worker(str(number)))
            cluster._wait_for_workers(workers)
            yield cluster

    @contextmanager
    def another_worker(self, name: str) -> Iterator[None]:
        """One more worker, which is there once the block begins, and ends with it."""
        before = self._registered_workers()
        with self._worker(name):
            self._wait_for_workers(before + 1)
            yield

    def _worker(self, name: str) -> AbstractContextManager[None]:
        room = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / f"work-{name}"))
        return self._process(f"worker-{name}", "worker.Worker", *room, self.master)

    def _registered_workers(self) -> int:
        return (self.folder / "master.log").read_text().count("Registering worker")

    def _wait_for_workers(self, number: int) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self._registered_workers() < number:
            if time.monotonic() > deadline:
                raise TimeoutError((self.folder / "master.log").read_text()[-4000:])
            time.sleep(0.1)

    @contextmanager
    def _process(self, name: str, main_class: str, *arguments: str) -> Iterator[None]:
        import pyspark

        java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
        home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
        (scala,) = Path(home, "jars").glob("scala-library-*.jar")
        # What Spark's shell scripts, which the package has not for workers, would set.
        settings = {
            "SPARK_HOME": home,
            "SPARK_SCALA_VERSION": ".".join(scala.stem.split("-")[-1].split(".")[:2]),
        }
        environment = os.environ | QUICK_JAVA | settings
        environment.pop("PYTHONPATH", None)
        command = [str(java), "-Xmx256m", "-cp", os.path.join(home, "jars", "*")]
        command += [f"org.apache.spark.deploy.{main_class}", "--host", "127.0.0.1", "--webui-port", "0"]
        with (self.folder / f"{name}.log").open("w") as out:
            process = subprocess.Popen(
                [*command, *arguments], env=environment, stdout=out, stderr=subprocess.STDOUT
            )
        try:
            yield
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def session(self, interpreter: Path) -> Iterator[Any]:
        """A session whose executors run an interpreter; no other one may be in use in this process."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(self.master)
        builder = builder.config("spark.executor.memory", "512m").config("spark.driver.host", "127.0.0.1")
        # Executors that are lost are asked for their blocks three times, five seconds apart, unless told otherwise.
        builder = builder.config("spark.shuffle.io.retryWait", "200ms").config("spark.locality.wait", "500ms")
        # Settings of a session before this one are still in the JVM.
        builder = builder.config("spark.executorEnv.PYTHONPATH", "")
        with (
            patch.dict(os.environ, {"PYSPARK_PYTHON": str(interpreter)}),
            session_of(builder, {}) as spark,
        ):
            yield spark
