"""Flink's streaming semantics, exactly, inside a PySpark batch job, at the speed of a native columnar engine.

Where to start::

    flinkcore.datastream.StreamExecutionEnvironment.get_execution_environment()   # in this process
    flinkcore.spark.SparkExecutionEnvironment(spark)                              # on Spark

Their ``from_event_log`` gives a ``flinkcore.datastream.DataStream``, whose ``assign_timestamps_and_watermarks``,
``key_by`` and ``window`` with ``aggregate``, or ``process``, make a job. ``execute()`` gives its result: rows, side
outputs and report.

flinkcore.common
    Duration, Time, WatermarkStrategy, OutputTag and watermark generators.
flinkcore.datastream
    Environment, streams and windows; ``flinkcore.datastream.aggregates``: count, sum_, max_by and others.
flinkcore.spark
    SparkExecutionEnvironment, configure_spark, start_session; needs pyspark.
flinkcore.columnar.results.report
    ReplayReport: counts of what happened to every event.
flinkcore.testing
    Test harnesses of functions and operators, and a pytest plugin.
flinkcore.errors
    Every error that is raised on purpose.

From a shell: ``flinkcore replay --help``, ``flinkcore demo``.
"""

__version__ = "0.2.0"
