"""The environment of commands that run on Spark."""

from __future__ import annotations

import importlib
from typing import Any

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError


def spark_environment(master: str, otherwise: str) -> StreamExecutionEnvironment:
    """Return an environment on a session of its own.

    Parameters
    ----------
    master : str
        Master URL of Spark.
    otherwise : str
        How to run without Spark, for the message.

    Raises
    ------
    ConfigurationError
        If Spark is not installed.
    """
    spark = spark_library(otherwise)
    environment: StreamExecutionEnvironment = spark.SparkExecutionEnvironment(
        spark.start_session(master, "flinkcore")
    )
    return environment


def spark_library(otherwise: str) -> Any:
    """Return the package `flinkcore.spark`.

    Parameters
    ----------
    otherwise : str
        What to do without Spark, for the message.

    Raises
    ------
    ConfigurationError
        If Spark is not installed.
    """
    try:
        return importlib.import_module("flinkcore.spark")
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{error}, or {otherwise}") from None
