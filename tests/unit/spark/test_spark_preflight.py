"""What is said of executors that cannot run what is sent to them."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from flinkcore.errors import ConfigurationError
from flinkcore.spark.shipping import preflight
from flinkcore.spark.shipping.task_errors import _refused_interpreter, task_errors_raised

LOST = "Job aborted: Lost task 0.0 in stage 0.0 (TID 0) (10.0.0.7 executor 3): "


@pytest.mark.parametrize(
    ("account", "told"),
    [
        (
            "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: "
            "3.10 than that in driver: 3.11, PySpark cannot run with different minor versions.\nPlease check",
            "Python in worker has different version: 3.10 than that in driver: 3.11, PySpark cannot run with "
            "different minor versions.",
        ),
        (
            'java.io.IOException: Cannot run program "./job/bin/python": error=2, No such file or directory\n\tat java',
            'Cannot run program "./job/bin/python": error=2, No such file or directory.',
        ),
        (
            "org.apache.spark.SparkException:\nError from python worker:\n  /usr/bin/python3: Error while finding "
            "module specification for 'pyspark.daemon' (ModuleNotFoundError: No module named 'pyspark')\nPYTHONPATH:",
            "No module named 'pyspark'.",
        ),
    ],
)
def test_an_executor_with_another_interpreter_or_none_is_named(account: str, told: str) -> None:
    refused = _refused_interpreter(Exception(LOST + account))
    assert str(refused).startswith(
        f"executor 3 at 10.0.0.7 cannot run this driver's functions: {told} Driver and executors need one minor version"
    )


def test_other_errors_are_not_taken_for_a_missing_interpreter() -> None:
    assert _refused_interpreter(Exception(f"{LOST}java.lang.OutOfMemoryError: Java heap space")) is None
    assert (
        _refused_interpreter(Exception(f"{LOST}ModuleNotFoundError: No module named 'pysparkling'")) is None
    )


def session(master: str, interpreter: str) -> Any:
    context = SimpleNamespace(master=master, pythonExec=interpreter)
    return SimpleNamespace(_jsparkSession=None, sparkContext=context)


def error_of_workers(monkeypatch: pytest.MonkeyPatch, master: str, interpreter: str, **found: str) -> str:
    """Return the error of the preflight of a session whose workers report what they have."""
    monkeypatch.setattr(preflight, "_reports", lambda *_: [{"place": "here", **found}])
    with pytest.raises(ConfigurationError) as caught:
        preflight.executor_reports(session(master, interpreter), [])
    return str(caught.value)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local-cluster[1,1,1024]"])
def test_workers_of_a_local_session_that_lack_a_package_run_another_interpreter(
    master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    error = error_of_workers(monkeypatch, master, "/other/python3", pyarrow="", numpy="2.0")
    assert error.startswith("the Python worker here needs pyarrow 19 or later and has none. ")
    assert f"run /other/python3, and this program runs {sys.executable}" in error
    assert "PYSPARK_PYTHON or spark.pyspark.python" in error
    assert "configure_spark" in error
    assert error.endswith(f"set PYSPARK_PYTHON to {sys.executable} before the session starts")
    assert "venv-pack" not in error
    monkeypatch.setenv("PYSPARK_PYTHON", "/other/python3")  # configure_spark keeps what the user has set
    error = error_of_workers(monkeypatch, master, "/other/python3", pyarrow="", numpy="2.0")
    assert error.endswith(f"Set PYSPARK_PYTHON to {sys.executable} before the session starts")
    assert "configure_spark" not in error


def test_workers_that_run_this_interpreter_need_the_package_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = error_of_workers(monkeypatch, "local[2]", sys.executable, pyarrow="", numpy="2.0")
    assert error.endswith(f"has none. Install what is missing for {sys.executable}")


def test_executors_of_a_cluster_need_an_image_or_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    error = error_of_workers(monkeypatch, "spark://there:7077", "python3", pyarrow="", numpy="2.0")
    assert "venv-pack" in error
    assert "configure_spark" not in error


def test_another_minor_version_on_this_machine_has_the_same_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    refusal = f"{LOST}[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10"
    remedy = preflight.ways_out(session("local[2]", "python3"))
    with pytest.raises(ConfigurationError, match="configure_spark") as caught, task_errors_raised(remedy):
        raise PySparkException(refusal)
    assert "venv-pack" not in str(caught.value)
