"""A Spark Connect server on this machine, and a session of it."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from equipment.spark_sessions import QUICK_JAVA, end_shared_context

DEADLINE_SECONDS = 240


@contextmanager
def connect_session(folder: Path, interpreter: Path) -> Iterator[Any]:
    """A session of a server of two cores whose workers run an interpreter; both end with the block."""
    import pyspark
    from pyspark.sql import SparkSession

    from flinkcore.spark import configure_spark, ensure_java

    ensure_java()
    end_shared_context()  # a process has a remote session or a context
    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.progress.reportInterval": "50ms",
        # To compile code takes longer than all that tests run.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    environment = os.environ | QUICK_JAVA | {"PYSPARK_PYTHON": str(interpreter), "SPARK_HOME": home}
    environment.pop("PYTHONPATH", None)
    command = [os.path.join(home, "bin", "spark-submit"), "--master", "local[2]", "--driver-memory", "512m"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = folder / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not _listens(port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text()[-4000:])
            time.sleep(0.1)
        # PySpark leaves in the environment that this process is a client.
        with patch.dict(os.environ):
            try:
                session = configure_spark(SparkSession.builder.remote(f"sc://127.0.0.1:{port}")).getOrCreate()
                yield session
                session.stop()
            finally:
                # The builder is one object for the whole process and would hand these settings to the next session.
                SparkSession.builder._options.clear()
    finally:
        server.kill()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
