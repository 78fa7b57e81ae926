"""Flink's streaming semantics, exactly, inside a PySpark batch job, at the speed of a native columnar engine.

Where to start::

    import flinkcore as fc

    env = fc.StreamExecutionEnvironment.get_execution_environment()   # in this process
    env = fc.spark.SparkExecutionEnvironment(spark)                   # on Spark

Their ``from_event_log`` returns a ``flinkcore.datastream.LogStream``, whose ``assign_timestamps_and_watermarks``,
``key_by`` and ``window`` with ``aggregate``, or ``process``, make a job. ``execute()`` gives its result (`JobResult`):
rows, side outputs and a `ReplayReport`. The names that most jobs use are in this package; all others are in these
packages, which need no import of their own:

flinkcore.common
    Duration, Time, WatermarkStrategy, OutputTag and watermark generators.
flinkcore.datastream
    Environment, streams, functions, windows and state; ``flinkcore.datastream.aggregates``: count, sum_ and others.
flinkcore.spark
    SparkExecutionEnvironment, configure_spark, start_session; needs pyspark.
flinkcore.analysis
    Lateness, histories of keys, comparison of results, and point-in-time joins.
flinkcore.savepoints
    Savepoints of Flink as Arrow tables.
flinkcore.testing
    Test harnesses of functions and operators, and a pytest plugin.
flinkcore.errors
    Every error that is raised on purpose.

The other packages are private: their names and places change without notice.

From a shell: ``flinkcore replay --help``, ``flinkcore demo``.
"""

from typing import TYPE_CHECKING, Final, NoReturn

from flinkcore._internal.python.lazy_names import by_name, lazy_names

if TYPE_CHECKING:
    from flinkcore import analysis, common, datastream, errors, savepoints, spark, testing  # noqa: F401, attributes
    from flinkcore.columnar.results.report import ReplayReport
    from flinkcore.columnar.results.result import JobResult, SideOutput
    from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
    from flinkcore.datastream import FILE, PARTITION, StreamExecutionEnvironment
    from flinkcore.datastream.aggregates import (
        collect,
        count,
        count_distinct,
        first,
        last,
        max_,
        max_by,
        mean,
        min_,
        min_by,
        sum_,
    )
    from flinkcore.datastream.window import (
        EventTimeSessionWindows,
        SlidingEventTimeWindows,
        TumblingEventTimeWindows,
    )
    from flinkcore.log.decoding.avro_values import avro_values
    from flinkcore.log.decoding.debezium import debezium_values
    from flinkcore.log.decoding.json_values import json_values
    from flinkcore.log.decoding.protobuf_values import protobuf_values

__all__ = [
    "FILE",
    "PARTITION",
    "Duration",
    "EventTimeSessionWindows",
    "JobResult",
    "OutputTag",
    "ReplayReport",
    "SideOutput",
    "SlidingEventTimeWindows",
    "StreamExecutionEnvironment",
    "Time",
    "TumblingEventTimeWindows",
    "WatermarkStrategy",
    "avro_values",
    "collect",
    "count",
    "count_distinct",
    "debezium_values",
    "first",
    "json_values",
    "last",
    "max_",
    "max_by",
    "mean",
    "min_",
    "min_by",
    "protobuf_values",
    "sum_",
]

__version__ = "0.3.0"

_MODULES: Final = by_name(
    {
        "columnar.results.report": "ReplayReport",
        "columnar.results.result": "JobResult SideOutput",
        "common": "Duration OutputTag Time WatermarkStrategy",
        "datastream": "FILE PARTITION StreamExecutionEnvironment",
        "datastream.aggregates": "collect count count_distinct first last max_ max_by mean min_ min_by sum_",
        "datastream.window": "EventTimeSessionWindows SlidingEventTimeWindows TumblingEventTimeWindows",
        "log.decoding.avro_values": "avro_values",
        "log.decoding.debezium": "debezium_values",
        "log.decoding.json_values": "json_values",
        "log.decoding.protobuf_values": "protobuf_values",
    }
)


def _refuse(name: str) -> NoReturn:
    from importlib import import_module
    from importlib.util import find_spec

    # Python asks for a module of this package before it imports it.
    if find_spec(f"{__name__}.{name}") is not None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in _WITH_MORE_NAMES:
        if name in import_module(module).__all__:
            raise AttributeError(f"module {__name__!r} has no {name}: write from {module} import {name}")
    from flinkcore._internal.python.missing_features import refuse_aggregate  # for wrong names alone

    refuse_aggregate(__name__, name)


_WITH_MORE_NAMES: Final = tuple(
    f"{__name__}.{package}"
    for package in ("common", "datastream", "datastream.window", "datastream.aggregates")
)
"""Modules of which this one has the names that most jobs need."""


_PACKAGES: Final = ("analysis", "common", "datastream", "errors", "savepoints", "spark", "testing")

__getattr__, __dir__ = lazy_names(__name__, _MODULES, _refuse, _PACKAGES)
