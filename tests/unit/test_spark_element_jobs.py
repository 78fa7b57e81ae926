"""Jobs that run element by element are refused on Spark, with what to do instead."""

import pytest

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError
from flinkcore.spark.environment import SparkExecutor


def on_spark() -> StreamExecutionEnvironment:
    executor = SparkExecutor.__new__(SparkExecutor)  # a job that is refused needs no session
    return StreamExecutionEnvironment(executor)


def test_a_job_of_python_functions_is_refused_with_its_steps() -> None:
    numbers = on_spark().from_collection([1]).map(str)
    with pytest.raises(ConfigurationError, match=r"'map by str: .*which Spark does not do: run it embedded"):
        numbers.execute_and_collect()
    with pytest.raises(ConfigurationError, match="the job runs element by element"):
        numbers.to_dataframe()


def test_a_job_with_a_sink_is_refused() -> None:
    env = on_spark()
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=r"the job 'numbers' runs element by element .*'sink print'"):
        env.execute("numbers")
