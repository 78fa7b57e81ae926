"""The environment of commands that run on Spark."""

from __future__ import annotations

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError


def spark_environment(master: str, otherwise: str) -> StreamExecutionEnvironment:
    """Return an environment on a session of its own.

    Parameters
    ----------
    master : str
        Of Spark.
    otherwise : str
        How to run without Spark, for the message.

    Raises
    ------
    ConfigurationError
        If Spark is not installed.
    """
    try:
        from flinkcore.spark import SparkExecutionEnvironment, start_session
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f'{error.name} is not installed: pip install "flinkcore[spark]", or {otherwise}'
        ) from None
    return SparkExecutionEnvironment(start_session(master, "flinkcore"))
