"""The programs of this folder put out on Spark what they put out under PyFlink, and embedded.

Some of them by default, all with FLINKCORE_TEST_ALL=1.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from equipment.sampling import ALL
from equipment.spark_sessions import spark_session
from pyflink_programs import program_file
from pyflink_programs.canonical_values import canonical_outputs, comparable

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from flinkcore import pyflink
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.spark import SparkExecutionEnvironment

REPRESENTATIVE = [
    "alerts_side_output",
    "allowed_lateness",
    "any_python_object",
    "broadcast_rules",
    "collect_results",
    "connect_co_process",
    "custom_trigger",
    "deduplication_with_ttl",
    "file_sink",
    "file_source",
    "fraud_detection",
    "idle_source",
    "interval_join",
    "keyed_twice",
    "late_data_side_output",
    "number_sequence",
    "partition_custom",
    "processing_time_timers",
    "rows_with_names",
    "runtime_context",
    "scalar_types",
    "session_windows",
    "timers_and_watermarks",
    "top_n_per_window",
    "window_after_process",
    "word_count",
]
"""Run at every time: each kind of operator, source, sink and value is in one of them."""

OTHERS_WITH_TWO_SUBTASKS = {
    *("allowed_lateness", "automatic_mode", "batch_mode", "broadcast_rules", "continuous_event_time_trigger"),
    "count_with_timeout",
    *(
        "csv_dialects",
        "file_sink",
        "fraud_detection",
        "inactivity",
        "late_data_side_output",
        "number_sequence",
    ),
    *("partitioning", "project_and_names", "runtime_context", "sort_by_event_time", "timers_and_watermarks"),
    *("top_n_per_window", "window_context", "window_state"),
}
"""Programs that say something else with two subtasks: of later watermarks, keys that each sorts, more files, ..."""

PROGRAMS = (
    [name for name in program_file.names() if program_file.clock(name) == "arrival"]
    if ALL
    else REPRESENTATIVE
)

PROGRAMS_OF_TWO_SUBTASKS = (
    PROGRAMS if ALL else [name for name in PROGRAMS if name in OTHERS_WITH_TWO_SUBTASKS]
)
"""By default those that depend on it: that Spark gives what is given embedded, random jobs show."""


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session("local[2]") as session:
        yield session


def outputs(name: str, env: StreamExecutionEnvironment) -> dict[str, list[Any]]:
    env.add_python_file(pyflink.__file__)
    module = program_file.load(name)
    cloudpickle.register_pickle_by_value(
        module
    )  # workers do not have it, as they have no __main__ of the driver
    try:
        return canonical_outputs(module.run(env))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def assert_as_recorded(name: str, given: dict[str, list[Any]]) -> None:
    expected = json.loads((program_file.RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    ordered = expected["ordered"]
    assert comparable(given, ordered) == comparable(expected["outputs"], ordered)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_puts_out_on_spark_what_it_puts_out_under_pyflink(spark: Any, name: str) -> None:
    assert_as_recorded(name, outputs(name, SparkExecutionEnvironment(spark).set_parallelism(1)))


@pytest.mark.parametrize("name", PROGRAMS_OF_TWO_SUBTASKS)
def test_a_program_of_two_subtasks_puts_out_on_spark_what_it_puts_out_embedded(spark: Any, name: str) -> None:
    given = outputs(name, SparkExecutionEnvironment(spark).set_parallelism(2))
    embedded = outputs(name, StreamExecutionEnvironment.get_execution_environment().set_parallelism(2))
    drawn = ("csv_dialects", "file_sink", "partition_custom", "texts_in_files")  # names of files
    ordered = name not in drawn
    assert comparable(given, ordered) == comparable(embedded, ordered)
    if name not in OTHERS_WITH_TWO_SUBTASKS:
        assert_as_recorded(name, given)
