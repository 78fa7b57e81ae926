"""Features of PyFlink, and methods of Spark, that flinkcore does not have, and what to use instead."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

from flinkcore.errors import UnsupportedOperationError

MISSING_NAMES: Final = {
    "CustomCheckpointStorage": "it is a class of Java: leave it out, a job writes no periodic checkpoints",
    "CustomStateBackend": "it is a class of Java: leave it out, state is held in memory",
}
"""Names of ``pyflink.datastream`` with what to use instead."""

MISSING_COMMON_NAMES: Final = {
    "InputDependencyConstraint": "leave it out: sources are read together",
    "TypeSerializer": "take a type of Types, or PickleSerializer",
    "AssignerWithPeriodicWatermarksWrapper": "it is a class of Java: derive a WatermarkGenerator",
}
"""Names of ``pyflink.common`` with what to use instead."""

_NO_TABLES = "the Table API and SQL are not there; take streams, or a table of Arrow by from_event_log(...)"

MISSING_TABLE_NAMES: Final = {
    **dict.fromkeys(
        (
            *(
                "TableEnvironment",
                "StreamTableEnvironment",
                "EnvironmentSettings",
                "TableConfig",
                "SqlDialect",
            ),
            *("Table", "GroupedTable", "GroupWindowedTable", "OverWindowedTable", "WindowGroupedTable"),
            *("StatementSet", "TableDescriptor", "FormatDescriptor", "Schema", "TableSchema", "TableResult"),
            *("ScalarFunction", "TableFunction", "AggregateFunction", "TableAggregateFunction"),
            *("AsyncScalarFunction", "FunctionContext", "DataView", "ListView", "MapView", "Expression"),
            *("Module", "ModuleEntry", "ChangelogMode", "ExplainDetail", "ResultKind", "CompiledPlan"),
            *("PlanReference", "TablePipeline"),
        ),
        _NO_TABLES,
    ),
    "UserDefinedType": "take Types.PICKLED_BYTE_ARRAY()",
    "MultisetType": "take a map of counts",
    **dict.fromkeys(
        ("YearMonthIntervalType", "DayTimeIntervalType", "ZonedTimestampType", "NullType", "RawType"),
        "no column of a file has this type",
    ),
}
"""Names of ``pyflink.table`` and its types with what to use instead."""

MISSING_FUNCTION_NAMES: Final = {
    "AsyncFunctionDescriptor": "take AsyncDataStream.ordered_wait(...) or unordered_wait(...)",
}
"""Names of ``pyflink.datastream.functions`` with what to use instead."""

MISSING_FILE_NAMES: Final = {
    "FileEnumeratorProvider": "leave it out: files are read in the order of their names",
    "FileSplitAssignerProvider": "leave it out: files are dealt out in the order of their names",
    "FileCompactStrategy": "take a larger part_size in the rolling policy",
    "FileCompactor": "take a larger part_size in the rolling policy",
    "StreamingFileSink": "take FileSink, and sink_to instead of add_sink",
    "DefaultRollingPolicy": "take RollingPolicy.default_rolling_policy(...)",
    "OnCheckpointRollingPolicy": "take RollingPolicy.on_checkpoint_rolling_policy()",
}
"""Names of ``pyflink.datastream.connectors.file_system`` with what to use instead."""

MISSING_CONNECTORS: Final = {
    **dict.fromkeys(
        ("kafka", "dynamic_kafka", "kinesis", "pulsar", "rabbitmq"),
        "dump the topic into files and read them by from_event_log(..., arrival=..., split=...), or collect it into a "
        "list for from_collection",
    ),
    "jdbc": "write the elements with a SinkFunction that uses a Python driver",
    "cassandra": "write the elements with a SinkFunction that uses a Python driver",
    "elasticsearch": "write the elements with a SinkFunction that uses a Python client",
    "hybrid_source": "union the streams of both sources",
}
"""Modules of ``pyflink.datastream.connectors`` with what to use instead."""


MISSING_CONNECTOR_NAMES: Final = {
    **dict.fromkeys(
        ("KafkaSource", "KafkaSink", "FlinkKafkaConsumer", "FlinkKafkaProducer", "Semantic"),
        MISSING_CONNECTORS["kafka"],
    ),
    **dict.fromkeys(
        (
            "DynamicKafkaSource",
            "DynamicKafkaSourceBuilder",
            "KafkaMetadataService",
            "KafkaRecordDeserializationSchema",
            "KafkaStreamSetSubscriber",
            "KafkaStreamSubscriber",
            "PulsarSource",
            "PulsarSourceBuilder",
            "RMQConnectionConfig",
            "RMQSink",
            "RMQSource",
            "SingleClusterTopicMetadataService",
            "StartCursor",
            "StopCursor",
            "StreamPatternSubscriber",
        ),
        MISSING_CONNECTORS["kafka"],
    ),
    **dict.fromkeys(
        ("JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"), MISSING_CONNECTORS["jdbc"]
    ),
    **MISSING_FILE_NAMES,
    **dict.fromkeys(
        ("StreamTransformer", "SupportsPreprocessing"),
        "apply a function of your own to the stream before its sink",
    ),
    **MISSING_CONNECTORS,
}
"""Names of ``pyflink.datastream.connectors`` and its module ``base`` with what to use instead."""

_GROUPS: Final = (
    "call key_by('column'), then window(TumblingEventTimeWindows.of(Time.hours(1))), or another, and "
    "aggregate(n=count(), ...)"
)
_AGGREGATES: Final = (
    "call aggregate(n=count(), total=sum_('column')) on windows: window(...) behind key_by('column')"
)
_NO_ORDER: Final = (
    "results come as they are emitted; sort what to_arrow(), to_pandas() or, on Spark, to_dataframe() gives"
)
_DUPLICATES: Final = (
    "call key_by('column') and process(...) with a function that gives the first event of each key, or take "
    "to_arrow() or, on Spark, to_dataframe()"
)
_COMPUTES: Final = "call with_columns(name=expression)"
_RENAMES: Final = "call select('kept', new_name=pc.field('old_name'))"

MISSING_STREAM_METHODS: Final = {
    **dict.fromkeys(("groupBy", "groupby", "group_by"), _GROUPS),
    **dict.fromkeys(("agg", "count", "avg", "mean"), _AGGREGATES),
    "where": "call filter(pc.field('column') > 0)",
    **dict.fromkeys(("withColumn", "withColumns", "with_column"), _COMPUTES),
    **dict.fromkeys(("withColumnRenamed", "withColumnsRenamed"), _RENAMES),
    "selectExpr": "call select('column', name=expression)",
    "drop": "call select(...) with the columns that remain",
    **dict.fromkeys(("orderBy", "sort"), _NO_ORDER),
    **dict.fromkeys(("distinct", "dropDuplicates", "drop_duplicates"), _DUPLICATES),
    **dict.fromkeys(("unionAll", "unionByName"), "call union(...)"),
    "withWatermark": (
        "call assign_timestamps_and_watermarks(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(5)))"
    ),
    **dict.fromkeys(("collect", "toArrow"), "call to_arrow(), or execute_and_collect() for single elements"),
    "toPandas": "call to_pandas()",
    **dict.fromkeys(("limit", "head", "take"), "call show(rows), or execute_and_collect(limit=rows)"),
    **dict.fromkeys(
        ("write", "writeStream", "writeTo"), "call write_parquet(...), write_delta(...) or write_iceberg(...)"
    ),
}
"""Methods of Spark's DataFrames and grouped data that streams do not have, with what to use instead."""

_OF_JAVA: Final = "it wraps an object of Java, and there is no JVM"
_FOR_JAVA: Final = frozenset(("need_conversion", "to_internal_type", "from_internal_type"))

MISSING_MODULES: Final = {
    "flinkcore.common.utils": _OF_JAVA,
    "flinkcore.datastream.utils": _OF_JAVA,
    "flinkcore.util": _OF_JAVA,
    "flinkcore.common.input_dependency_constraint": MISSING_COMMON_NAMES["InputDependencyConstraint"],
    "flinkcore.common.execution_mode": "call set_runtime_mode(RuntimeExecutionMode.BATCH) of the environment",
    "flinkcore.dataset": "take datastream, with set_runtime_mode(RuntimeExecutionMode.BATCH) of its environment",
    "flinkcore.java_gateway": "there is no JVM",
    **{f"flinkcore.datastream.connectors.{name}": instead for name, instead in MISSING_CONNECTORS.items()},
    **{
        f"flinkcore.table.{name}": _NO_TABLES
        for name in (
            *(
                "catalog",
                "changelog_mode",
                "compiled_plan",
                "data_view",
                "descriptors",
                "environment_settings",
            ),
            *("explain_detail", "expression", "expressions", "functions", "model_descriptor", "module"),
            *(
                "plan_reference",
                "resolved_expression",
                "serializers",
                "result_kind",
                "schema",
                "sql_dialect",
                "statement_set",
            ),
            *("table", "table_config", "table_descriptor", "table_environment", "table_pipeline"),
            *("table_result", "table_schema", "udf", "utils", "window"),
        )
    },
}
"""Modules of PyFlink 1 and 2, with ``flinkcore`` in place of ``pyflink``, and what to use instead."""


_ROW_SCHEMAS: Final = {
    f"{kind}Row{direction}": f"import it from datastream.formats.{kind.lower()}"
    for kind in ("Avro", "Csv", "Json")
    for direction in ("DeserializationSchema", "SerializationSchema")
}
_BATCH: Final = "call set_runtime_mode(RuntimeExecutionMode.BATCH) of the environment"
_RETENTION: Final = (
    "take ExternalizedCheckpointRetention, and set_externalized_checkpoint_retention(...) of the "
    "CheckpointConfig"
)
_STATE_BACKENDS: Final = {
    "MemoryStateBackend": "take HashMapStateBackend()",
    "FsStateBackend": "take HashMapStateBackend(), and set_checkpoint_storage_dir(...) of the CheckpointConfig",
    "RocksDBStateBackend": (
        "take EmbeddedRocksDBStateBackend(), and set_checkpoint_storage_dir(...) of the CheckpointConfig"
    ),
}

FORMER_NAMES: Final[dict[str, dict[str, str]]] = {
    "flinkcore.common": {**_ROW_SCHEMAS, "ExecutionMode": _BATCH},
    "flinkcore.common.serialization": _ROW_SCHEMAS,
    "flinkcore.datastream": {**_STATE_BACKENDS, "ExternalizedCheckpointCleanup": _RETENTION},
    "flinkcore.datastream.checkpoint_config": {"ExternalizedCheckpointCleanup": _RETENTION},
    "flinkcore.datastream.state_backend": _STATE_BACKENDS,
    "flinkcore.datastream.connectors": dict.fromkeys(
        (
            "FlinkKafkaConsumerBase",
            "FlinkKafkaProducerBase",
            "PulsarDeserializationSchema",
            "SubscriptionType",
        ),
        MISSING_CONNECTORS["kafka"],
    ),
}
"""Names that PyFlink's versions 1 had, and 2 has not, by module, with what to use instead."""

_NO_KRYO: Final = "leave it out: there are no objects of Java to serialize"
_NO_CONSTRAINT: Final = MISSING_COMMON_NAMES["InputDependencyConstraint"]
_RESTARTS: Final = "call set_restart_strategy(...) of the environment"
_FROM_CHECKPOINT: Final = "leave it out: a job goes on from what restore_from names"
_KRYO_METHODS: Final = dict.fromkeys(
    ("add_default_kryo_serializer", "register_type_with_kryo_serializer"), _NO_KRYO
)

FORMER_METHODS: Final[dict[str, dict[str, str]]] = {
    "StreamExecutionEnvironment": {
        **_KRYO_METHODS,
        "register_type": _NO_KRYO,
        "read_text_file": (
            "call from_source(FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build(), "
            "WatermarkStrategy.no_watermarks(), 'lines')"
        ),
    },
    "ExecutionConfig": {
        **_KRYO_METHODS,
        **dict.fromkeys(
            (
                "disable_auto_type_registration",
                "get_registered_types_with_kryo_serializer_classes",
                "is_auto_type_registration_disabled",
                "register_kryo_type",
                "register_pojo_type",
            ),
            _NO_KRYO,
        ),
        **dict.fromkeys(
            ("get_default_input_dependency_constraint", "set_default_input_dependency_constraint"),
            _NO_CONSTRAINT,
        ),
        **dict.fromkeys(("get_execution_mode", "set_execution_mode"), _BATCH),
        **dict.fromkeys(("get_restart_strategy", "set_restart_strategy"), _RESTARTS),
    },
    "CheckpointConfig": {
        "enable_externalized_checkpoints": _RETENTION,
        "get_externalized_checkpoint_cleanup": "call get_externalized_checkpoint_retention()",
        "set_externalized_checkpoint_cleanup": _RETENTION,
        **dict.fromkeys(
            ("is_prefer_checkpoint_for_recovery", "set_prefer_checkpoint_for_recovery"), _FROM_CHECKPOINT
        ),
    },
}
"""Methods that PyFlink's versions 1 had, and 2 has not, by class, with what to use instead."""


class MissingModuleFinder:
    """Tells what to use instead when a program imports a module of PyFlink that flinkcore does not have."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Raise a MissingNameError for such a module; leave all others to other finders."""
        instead = MISSING_MODULES.get(fullname)
        if instead is not None:
            raise MissingNameError(
                f"flinkcore has no {fullname.partition('.')[2]}, which PyFlink has: {instead}"
            )


class MissingNameError(UnsupportedOperationError, ImportError):
    """A name of PyFlink that flinkcore does not have."""


class MissingMethodError(UnsupportedOperationError, AttributeError):
    """A method of PyFlink, or of Spark, that flinkcore does not have."""


class WithoutJava:
    """Says of PyFlink's methods that give or take objects of Java that there are none."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("get_java_", "to_j_", "_j_")) or name in _FOR_JAVA:
            raise MissingMethodError(
                f"{type(self).__name__} has no {name}: {_OF_JAVA}. Values stay Python objects"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class WithFormerMethods:
    """Says of methods that PyFlink's versions 1 had, and 2 has not, what to use instead."""

    if not TYPE_CHECKING:  # a type checker knows that there is no such method

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            for base in type(self).__mro__:
                instead = FORMER_METHODS.get(base.__name__, {}).get(name)
                if instead is not None:
                    raise MissingMethodError(f"{kind} has no {name}, which PyFlink 1 had: {instead}")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def refuse_stream_method(stream: object, name: str) -> NoReturn:
    """Raise for a name that a stream, or the windows of one, do not have.

    Raises
    ------
    MissingMethodError
        If it is one of Spark's; the message says what to use instead.
    AttributeError
        If it is not.
    """
    kind, instead = type(stream).__name__, MISSING_STREAM_METHODS.get(name)
    if instead is None:
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    raise MissingMethodError(f"{kind} has no {name}, which Spark has: {instead}")


def refuse_name(module: str, name: str, names: dict[str, str] | None = None) -> NoReturn:
    """Raise for a name that a module does not have.

    Raises
    ------
    MissingNameError
        If it is one of PyFlink's, or was in its versions 1; the message says what to use instead.
    AttributeError
        If it is not.
    """
    instead = (MISSING_NAMES if names is None else names).get(name)
    if instead is not None:
        raise MissingNameError(f"flinkcore has no {name}, which PyFlink has: {instead}")
    instead = FORMER_NAMES.get(module, {}).get(name)
    if instead is not None:
        raise MissingNameError(f"flinkcore has no {name}, which PyFlink 1 had: {instead}")
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


sys.meta_path.append(MissingModuleFinder())
