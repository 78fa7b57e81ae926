"""A standalone cluster of Spark on this machine, whose workers run an interpreter that has no flinkcore."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from models.spark_sessions import QUICK_JAVA

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
        import pyspark

        from flinkcore.spark import ensure_java

        ensure_java()
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
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        master = f"spark://127.0.0.1:{port}"
        common = [str(java), "-Xmx256m", "-cp", os.path.join(home, "jars", "*")]
        name = "org.apache.spark.deploy"
        with ExitStack() as running:

            def start(log: Path, *command: str) -> None:
                with log.open("w") as out:
                    process = subprocess.Popen(
                        [*common, *command], env=environment, stdout=out, stderr=subprocess.STDOUT
                    )
                running.callback(process.wait)
                running.callback(process.kill)

            here = ("--host", "127.0.0.1", "--webui-port", "0")
            start(folder / "master.log", f"{name}.master.Master", *here, "--port", str(port))
            for number in range(workers):
                room = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"))
                start(folder / f"worker-{number}.log", f"{name}.worker.Worker", *here, *room, master)
            deadline = time.monotonic() + DEADLINE_SECONDS
            while (folder / "master.log").read_text().count("Registering worker") < workers:
                if time.monotonic() > deadline:
                    raise TimeoutError((folder / "master.log").read_text()[-4000:])
                time.sleep(0.1)
            yield cls(folder, master)

    @contextmanager
    def session(self, interpreter: Path, **settings: str) -> Iterator[Any]:
        """A session whose executors run an interpreter; settings are named with underscores for dots.

        There must be no other one in this process.
        """
        from pyspark.sql import SparkSession

        from flinkcore.spark import configure_spark

        builder = SparkSession.builder.master(self.master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.executor.memory", "512m").config("spark.driver.host", "127.0.0.1")
        # Settings of a session before this one are still in the JVM.
        builder = builder.config("spark.executorEnv.PYTHONPATH", "")
        for name, value in settings.items():
            builder = builder.config(name.replace("_", "."), value)
        with patch.dict(os.environ, QUICK_JAVA | {"PYSPARK_PYTHON": str(interpreter)}):
            spark = configure_spark(builder).getOrCreate()
            spark.sparkContext.setLogLevel("OFF")
            try:
                yield spark
            finally:
                spark.stop()
                # The builder is one object for the whole process and would hand these settings to the next session.
                SparkSession.builder._options.clear()
