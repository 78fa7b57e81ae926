"""Replays on Spark; the only package of flinkcore that imports pyspark."""

from typing import TYPE_CHECKING

from flinkcore._internal.python.lazy_names import lazy_names

try:
    import pyspark  # noqa: F401, not there without the extra
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"flinkcore runs on Spark with {missing.name}, which is not installed. "
        "Install it: pip install 'flinkcore[spark]'",
        name=missing.name,
    ) from None

if TYPE_CHECKING:
    from flinkcore.spark.comparison import compare
    from flinkcore.spark.environment import SparkExecutionEnvironment, replay
    from flinkcore.spark.point_in_time import as_of
    from flinkcore.spark.sessions.java import ensure_java
    from flinkcore.spark.sessions.session import configure_spark, start_session
    from flinkcore.spark.shipping.sent_files import ship_flinkcore

__all__ = [
    "SparkExecutionEnvironment",
    "as_of",
    "compare",
    "configure_spark",
    "ensure_java",
    "replay",
    "ship_flinkcore",
    "start_session",
]

_MODULES = {
    "SparkExecutionEnvironment": "environment",
    "as_of": "point_in_time",
    "compare": "comparison",
    "configure_spark": "sessions.session",
    "ensure_java": "sessions.java",
    "replay": "environment",
    "ship_flinkcore": "shipping.sent_files",
    "start_session": "sessions.session",
}

# Python workers import this package before their first task, and need nothing of what drivers do.
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
