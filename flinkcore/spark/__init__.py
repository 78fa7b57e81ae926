"""Replays on Spark; the only package of flinkcore that imports pyspark."""

from flinkcore.spark.environment import SparkExecutionEnvironment, replay
from flinkcore.spark.sessions.java import ensure_java
from flinkcore.spark.sessions.session import configure_spark, start_session
from flinkcore.spark.shipping.sent_files import ship_flinkcore

__all__ = [
    "SparkExecutionEnvironment",
    "configure_spark",
    "ensure_java",
    "replay",
    "ship_flinkcore",
    "start_session",
]
