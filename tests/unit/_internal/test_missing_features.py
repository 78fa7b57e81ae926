"""What PyFlink has and flinkcore has not: an error that says what to use instead, and a page that lists it."""

import copy
import importlib
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore._internal.python import missing_features as missing_module
from flinkcore._internal.python.missing_features import missing_features
from flinkcore.common import Duration, OutputTag, RowKind, Time, Types, WatermarkStrategy
from flinkcore.datastream import (
    ExternalizedCheckpointRetention,
    KeyedLogStream,
    LogStream,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WindowedLogStream,
    aggregates,
    connectors,
)
from flinkcore.errors import ConfigurationError, UnsupportedOperationError

MISSING = missing_features()
NAMES = MISSING.names["flinkcore.datastream"]
COMMON_NAMES = MISSING.names["flinkcore.common"]
TABLE_NAMES = MISSING.names["flinkcore.table"]
CONNECTOR_NAMES = MISSING.names["flinkcore.datastream.connectors"]
FILE_NAMES = MISSING.names["flinkcore.datastream.connectors.file_system"]
CONNECTORS = {
    name.removeprefix("flinkcore.datastream.connectors."): instead
    for name, instead in MISSING.modules.items()
    if name.startswith("flinkcore.datastream.connectors.")
}

HAVE_CALLS = (
    *(LogStream, KeyedLogStream, WindowedLogStream, TumblingEventTimeWindows),
    *(WatermarkStrategy, Duration, Time, aggregates, pc),
)
"""What the calls are of that are named in place of Spark's."""

OF_TABLES = ("stream methods", "result methods", "aggregates")
OF_MODULES = ("modules", "modules in packages")
"""Tables of names that tables of Spark, Polars, pandas or SQL have."""

PAGE = (Path(__file__).parents[3] / "flinkcore" / "datastream" / "README.md").read_text()


def test_the_data_names_each_feature_once_and_says_what_to_use() -> None:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)

    source = Path(missing_module.__file__).with_suffix(".json").read_text(encoding="utf-8")
    content = json.loads(source, object_pairs_hook=once)
    assert content.keys() == {"names", "former names", "former methods", *OF_TABLES, *OF_MODULES}
    tables = [*map(content.get, OF_TABLES), *map(content.get, OF_MODULES)]
    for kind in ("names", "former names", "former methods"):
        tables += content[kind].values()
    for table in tables:
        names = [name for of_one in table.values() for name in of_one]
        assert all(table)
        assert len(names) == len(set(names)) > 0
    assert all(name.isidentifier() for names in MISSING.names.values() for name in names)


def test_what_is_missing_is_read_when_a_program_asks_for_it() -> None:
    program = """
from flinkcore import common, datastream, table
from flinkcore._internal.python.missing_features import missing_features
print(missing_features.cache_info().currsize)
try:
    datastream.CustomStateBackend
except ImportError:
    print(missing_features.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


@pytest.mark.parametrize("name", NAMES)
def test_importing_a_missing_name_says_what_to_use(name: str) -> None:
    with pytest.raises(ImportError, match=f"flinkcore has no {name}, which PyFlink has: ."):
        exec(f"from flinkcore.datastream import {name}")
    assert f"`{name}`" in PAGE
    assert NAMES[name] in PAGE


@pytest.mark.parametrize("name", COMMON_NAMES)
def test_importing_a_missing_common_name_says_what_to_use(name: str) -> None:
    with pytest.raises(ImportError, match=f"flinkcore has no {name}, which PyFlink has: ."):
        exec(f"from flinkcore.common import {name}")
    assert name in PAGE
    assert COMMON_NAMES[name] in PAGE


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_importing_a_missing_name_of_tables_says_what_to_use(name: str) -> None:
    module = "flinkcore.table.types" if name.endswith("Type") else "flinkcore.table"
    with pytest.raises(ImportError, match=f"flinkcore has no {name}, which PyFlink has: ."):
        exec(f"from {module} import {name}")


@pytest.mark.parametrize("name", CONNECTORS)
def test_importing_a_missing_connector_says_what_to_use(name: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=f"flinkcore has no {name}, which PyFlink has: ."):
        getattr(connectors, name)
    assert f"`connectors.{name}`" in PAGE
    assert CONNECTORS[name] in PAGE


@pytest.mark.parametrize("name", CONNECTOR_NAMES)
def test_importing_a_missing_name_of_connectors_says_what_to_use(name: str) -> None:
    for module in ("connectors", "connectors.base"):
        with pytest.raises(ImportError, match=f"flinkcore has no {name}, which PyFlink has: ."):
            exec(f"from flinkcore.datastream.{module} import {name}")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("common.serializer", "TypeSerializer"),
        ("common.watermark_strategy", "AssignerWithPeriodicWatermarksWrapper"),
        ("datastream.checkpoint_storage", "CustomCheckpointStorage"),
        ("datastream.state_backend", "CustomStateBackend"),
        ("datastream.functions", "AsyncFunctionDescriptor"),
    ],
)
def test_a_missing_name_is_missing_where_pyflink_has_it_too(module: str, name: str) -> None:
    with pytest.raises(ImportError, match=f"flinkcore has no {name}, which PyFlink has: ."):
        exec(f"from flinkcore.{module} import {name}")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module(f"flinkcore.{module}").nothing  # noqa: B018


def test_methods_for_objects_of_java_say_that_there_are_none() -> None:
    of_java = [
        *((Types.INT(), "get_java_type_info"), (Types.ROW([]), "to_internal_type")),
        *((RowKind.INSERT, "to_j_row_kind"), (OutputTag("late"), "get_java_output_tag")),
    ]
    for value, name in of_java:
        with pytest.raises(UnsupportedOperationError, match=f"has no {name}: .* there is no JVM"):
            getattr(value, name)
        assert not hasattr(value, name)
        with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
            value.nothing  # type: ignore[attr-defined]  # noqa: B018
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


def test_names_are_where_pyflink_has_them_too() -> None:
    file_system = importlib.import_module("flinkcore.datastream.connectors.file_system")
    for name in ("BucketAssigner", "FileSink", "FileSource", "FileSourceBuilder", "OutputFileConfig"):
        assert getattr(connectors, name) is getattr(file_system, name)
    assert connectors.RollingPolicy is file_system.RollingPolicy
    assert connectors.StreamFormat is file_system.StreamFormat
    assert (
        connectors.DeliveryGuarantee
        is importlib.import_module(f"{connectors.__name__}.base").DeliveryGuarantee
    )
    functions = importlib.import_module("flinkcore.datastream.functions")
    assert functions.TimerService is importlib.import_module("flinkcore.datastream").TimerService


@pytest.mark.parametrize("name", FILE_NAMES)
def test_importing_a_missing_name_of_files_says_what_to_use(name: str) -> None:
    with pytest.raises(ImportError, match=f"flinkcore has no {name}, which PyFlink has: ."):
        exec(f"from flinkcore.datastream.connectors.file_system import {name}")
    assert f"`{name}`" in PAGE
    assert FILE_NAMES[name] in PAGE


def calls_of(message: str) -> list[str]:
    """Return the names of the calls in a message."""
    return re.findall(r"\b([a-z]\w*)\(", message)


@pytest.mark.parametrize("name", [*MISSING.stream_methods, *MISSING.aggregates])
def test_a_method_of_tables_on_a_stream_says_what_to_use(name: str) -> None:
    stream = StreamExecutionEnvironment().from_event_log(pa.table({"k": [1], "t": [1]}), timestamp="t")
    keyed = stream.key_by("k")
    windows = TumblingEventTimeWindows.of(Time.hours(1))
    for each in (stream, keyed, keyed.window(windows), stream.window_all(windows)):
        if name.startswith("__") or name in ("sum", "min", "max"):  # which streams of single elements have
            continue
        kind = type(each).__name__
        with pytest.raises(UnsupportedOperationError, match=f"^{kind} has no {name}: .") as error:
            getattr(each, name)
        assert not hasattr(each, name)
        calls = [call for call in calls_of(str(error.value)) if call != "print"]
        assert calls or "columns" in str(error.value)
        assert [call for call in calls if not any(hasattr(there, call) for there in HAVE_CALLS)] == []
        with pytest.raises(AttributeError, match=f"^'{kind}' object has no attribute 'nothing'"):
            getattr(each, "nothing")  # noqa: B009


def job() -> LogStream:
    late = OutputTag("late")
    stream = StreamExecutionEnvironment().from_event_log(pa.table({"k": [1], "t": [1]}), timestamp="t")
    stream = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    windows = stream.key_by("k").window(TumblingEventTimeWindows.of(Time.hours(1)))
    return windows.side_output_late_data(late).aggregate(n=aggregates.count())


@pytest.mark.parametrize("name", MISSING.result_methods)
def test_a_method_of_tables_on_a_result_says_what_to_use(name: str) -> None:
    result = job().execute()
    result.discard()
    for each in (result, result.get_side_output(OutputTag("late"))):
        if name.startswith("__"):
            continue
        kind = type(each).__name__
        with pytest.raises(UnsupportedOperationError, match=f"^{kind} has no {name}: .") as error:
            getattr(each, name)
        assert not hasattr(each, name)
        # Of the result, its table, or the stream and its windows.
        there = (result, pa.Table, LogStream, WindowedLogStream)
        calls = [call for call in calls_of(str(error.value)) if call != "print"]
        assert calls or "columns" in str(error.value)
        assert [call for call in calls if not any(hasattr(one, call) for one in there)] == []
        with pytest.raises(AttributeError, match=f"^'{kind}' object has no attribute 'nothing'"):
            getattr(each, "nothing")  # noqa: B009
    assert result._collected is None


@pytest.mark.parametrize("name", ["write_parquet", "write_delta", "write_iceberg", "report"])
def test_a_side_output_says_how_it_is_written(name: str) -> None:
    result = job().execute()
    result.discard()
    side = result.get_side_output(OutputTag("late"))
    with pytest.raises(
        UnsupportedOperationError, match=f"^SideOutput has no {name}, .* write_parquet\\(path, side_outputs="
    ):
        getattr(side, name)


def test_streams_and_results_have_columns_and_a_schema_before_anything_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = job()
    names = ["k", "window_start", "window_end", "n", "late_firing", "watermark"]
    result = stream.execute()
    assert stream.columns == result.columns == stream.schema.names == names
    assert stream.schema == result.schema
    late = OutputTag("late")
    assert stream.get_side_output(late).columns == result.get_side_output(late).columns == ["k", "t"]
    assert result.get_side_output(late).schema == stream.get_side_output(late).schema
    assert result._collected is None
    assert result.to_arrow().schema == stream.schema
    del stream
    assert caplog.records == []


def test_length_and_items_of_streams_and_results_say_what_to_call() -> None:
    stream = job()
    result = stream.execute()
    result.discard()
    late = OutputTag("late")
    for rows in (stream, result, stream.get_side_output(late), result.get_side_output(late)):
        kind = type(rows).__name__
        with pytest.raises(TypeError, match=rf"^{kind} has no length: call to_arrow\(\), which has num_rows"):
            len(rows)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=rf"^{kind} has no items: call to_arrow\(\)"):
            rows["k"]  # type: ignore[index]
        with pytest.raises(TypeError, match=rf"^{kind} has no items: call to_arrow\(\)"):
            list(rows)  # type: ignore[call-overload]
        assert rows
    assert result._collected is None


@pytest.mark.parametrize("name", MISSING.aggregates)
def test_an_aggregate_of_another_name_says_which_it_is_here(name: str) -> None:
    call = MISSING.aggregates[name]
    given = eval(call, vars(aggregates).copy())
    assert isinstance(given, aggregates.Aggregate)
    if name != "mean":
        for module in ("flinkcore", "flinkcore.datastream.aggregates"):
            with pytest.raises(ImportError, match=f"^{module} has no {name}: take {re.escape(call)}$"):
                exec(f"from {module} import {name}")
    if name not in aggregates.FUNCTIONS:
        with pytest.raises(
            ConfigurationError, match=f"^no aggregate is named '{name}'. Take {re.escape(call)}$"
        ):
            aggregates.Aggregate(name, "column")


def test_settings_of_checkpoints_are_held_and_given_back() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    config = env.get_checkpoint_config()
    assert not config.is_externalized_checkpoints_enabled()
    assert config.is_fail_on_checkpointing_errors()
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    config.set_aligned_checkpoint_timeout(Duration.of_seconds(3)).set_force_unaligned_checkpoints()
    config.enable_unaligned_checkpoints().set_fail_on_checkpointing_errors(False)
    assert config.is_externalized_checkpoints_enabled()
    assert config.get_externalized_checkpoint_retention().name == "RETAIN_ON_CANCELLATION"
    assert config.get_alignment_timeout() == Duration.of_seconds(3)
    assert env.get_checkpointing_mode().name == "AT_LEAST_ONCE"
    assert not env.is_unaligned_checkpoints_enabled()  # as in Flink, while there are no checkpoints
    assert env.enable_checkpointing(1000).is_unaligned_checkpoints_enabled()
    assert env.is_force_unaligned_checkpoints()
    assert config.get_tolerable_checkpoint_failure_number() == 2**31 - 1
    assert env.get_checkpointing_consistency_mode() is env.get_checkpointing_mode()
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()


def test_settings_of_the_jvm_are_held_and_given_back() -> None:
    config = StreamExecutionEnvironment.get_execution_environment().get_config()
    assert config.enable_object_reuse().set_latency_tracking_interval(5) is config
    assert config.is_object_reuse_enabled()
    assert not config.disable_object_reuse().is_object_reuse_enabled()
    assert config.enable_force_kryo().is_force_kryo_enabled()
    assert not config.disable_force_kryo().is_force_kryo_enabled()
    assert config.enable_force_avro().is_force_avro_enabled()
    assert not config.disable_force_avro().is_force_avro_enabled()
    assert config.disable_generic_types().has_generic_types_disabled()
    assert not config.enable_generic_types().has_generic_types_disabled()
    assert not config.disable_auto_generated_uids().has_auto_generated_uids_enabled()
    assert config.enable_auto_generated_uids().has_auto_generated_uids_enabled()
    assert not config.disable_closure_cleaner().is_closure_cleaner_enabled()
    assert config.enable_closure_cleaner().is_closure_cleaner_enabled()
    assert config.set_use_snapshot_compression(True).is_use_snapshot_compression()
    assert config.set_task_cancellation_interval(7).get_task_cancellation_interval() == 7
    assert config.set_task_cancellation_timeout(0).get_task_cancellation_timeout() == 0
    with pytest.raises(
        ConfigurationError, match=r"task.cancellation.timeout must be a length of time .* not -1"
    ):
        config.set_task_cancellation_timeout(-1)
    assert config.get_default_kryo_serializer_classes() == {}
    assert config.get_registered_kryo_types() == config.get_registered_pojo_types() == []
    assert not hasattr(config, "enable_nothing")
    assert copy.deepcopy(config) == config


def test_what_nobody_has_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module("flinkcore.datastream").nothing  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        StreamExecutionEnvironment.get_execution_environment().nothing  # noqa: B018


def test_the_streams_are_where_pyflink_has_them() -> None:
    module = importlib.import_module("flinkcore.datastream.data_stream")
    for name in ("KeyedStream", "WindowedStream", "ConnectedStreams", "CloseableIterator", "DataStreamSink"):
        assert getattr(module, name) is getattr(sys.modules["flinkcore.datastream"], name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("name", [*MISSING.modules, *MISSING.modules_in_packages])
def test_importing_a_missing_module_says_what_to_use(name: str) -> None:
    importlib.import_module("flinkcore.datastream.formats")
    with pytest.raises(ImportError, match=f"flinkcore has no {name.partition('.')[2]}, which PyFlink has: ."):
        importlib.import_module(name)


def test_settings_of_a_cluster_are_accepted() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING).enable_checkpointing(1000).set_buffer_timeout(5)
    env.get_checkpoint_config().set_checkpoint_timeout(10).enable_unaligned_checkpoints()
    assert env.get_checkpoint_interval() == 1000
    assert env.get_buffer_timeout() == 5
    with pytest.raises(ConfigurationError, match="a mode is one of RuntimeExecutionMode"):
        env.set_runtime_mode("batch")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in MISSING.former_names.items() for name in names]
)
def test_a_name_of_pyflink_1_says_what_to_use(module: str, name: str) -> None:
    with pytest.raises(ImportError, match=f"flinkcore has no {name}, which PyFlink 1 had: ."):
        exec(f"from {module} import {name}")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module(module).nothing  # noqa: B018


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in MISSING.former_methods.items() for name in names]
)
def test_a_method_of_pyflink_1_says_what_to_use(kind: str, name: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    settings: tuple[object, ...] = (env, env.get_config(), env.get_checkpoint_config())
    (found,) = (each for each in settings if type(each).__name__ == kind)
    with pytest.raises(AttributeError, match=f"^{kind} has no {name}, which PyFlink 1 had: ."):
        getattr(found, name)
    assert not hasattr(found, name)
    with pytest.raises(AttributeError, match=f"^'{kind}' object has no attribute 'nothing'"):
        getattr(found, "nothing")  # noqa: B009


def test_what_takes_the_place_of_names_of_pyflink_1_is_there() -> None:
    for kind in ("Avro", "Csv", "Json"):
        formats = importlib.import_module(f"flinkcore.datastream.formats.{kind.lower()}")
        assert hasattr(formats, f"{kind}RowDeserializationSchema")
        assert hasattr(formats, f"{kind}RowSerializationSchema")
    env = StreamExecutionEnvironment.get_execution_environment()
    assert callable(env.set_restart_strategy)
    assert callable(env.get_checkpoint_config().set_checkpoint_storage_dir)
