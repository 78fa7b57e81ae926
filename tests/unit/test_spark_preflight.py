"""What is said of executors that cannot run what is sent to them."""

import pytest

pytest.importorskip("pyspark")

from flinkcore.spark.shipping.task_errors import _refused_interpreter

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
