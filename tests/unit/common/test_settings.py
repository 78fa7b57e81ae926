"""What each of Flink's settings means: the values that it takes, and who is told of those that have no meaning."""

import json
import re
import subprocess
import sys
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from equipment.settings_page import PAGE, page_with_tables

from flinkcore.common import Configuration, Duration, RestartStrategies, Row, Types
from flinkcore.common.memory_size import MemorySize
from flinkcore.common.settings import flink_settings as settings
from flinkcore.common.settings.flink_settings import (
    Meaning,
    Setting,
    all_settings,
    families,
    is_of_family,
    settings_of,
    unknown_settings,
)
from flinkcore.common.settings.setting_types import (
    DURATION,
    LIST,
    MAP,
    MEMORY_SIZE,
    SettingType,
    as_text,
    integer,
)
from flinkcore.datastream import (
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    PredefinedOptions,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from flinkcore.errors import CheckpointError, ConfigurationError, SourceError

FLINKS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "golden" / "settings.json").read_text(encoding="utf-8")
)
"""Flink's settings with their older keys and defaults, as tests/recorders/settings writes them."""

CONTENT: dict[str, Any] = json.loads(
    Path(settings.__file__).with_name("flink_settings.json").read_text(encoding="utf-8")
)

OTHER_DEFAULTS = {
    "parallelism.default": "the executor decides",
    "pipeline.max-parallelism": "Flink derives it from the parallelism",
    "pipeline.name": "as Flink names a job without a name",
    "state.changelog.enabled": "None, as of a program that has not set it",
    "pipeline.cached-files": "no files are an empty list",
    "pipeline.global-job-parameters": "no parameters are an empty mapping",
    "python.executable": "the one that runs the functions",
}


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def is_known(key: str) -> bool:
    older = {key for setting in all_settings().values() for key in setting.fallback_keys}
    return key in all_settings() or key in older or is_of_family(key)


def test_every_setting_of_flink_is_obeyed_or_without_meaning_or_refused() -> None:
    keys = {key for name, flinks in FLINKS.items() for key in (name, *flinks["older"])}
    assert len(FLINKS) > 800
    assert sorted(key for key in keys if not is_known(key)) == []


def test_every_family_is_one_of_flink() -> None:
    others = {
        "akka.",
        "containerized.",
        "presto.s3.",
        "s3.",
        "s3a.",
        "gs.",
        "sql-client.",
        "sql-gateway.",
        "table.",
    }
    others |= {"materialized-table.", "state.backend.async", "source.reader."}
    keys = {key for name, flinks in FLINKS.items() for key in (name, *flinks["older"])}
    assert [
        family
        for family in families()
        if family not in others | keys
        and not (family.endswith(".") and any(key.startswith(family) for key in keys))
    ] == []


def test_no_key_of_flink_is_taken_for_a_slip_of_another() -> None:
    keys = {key for name, flinks in FLINKS.items() for key in (name, *flinks["older"])}
    keys -= {key for setting in all_settings().values() for key in (setting.name, *setting.fallback_keys)}
    assert len(keys) > 500
    assert unknown_settings(Configuration.from_dict(dict.fromkeys(keys, "1"))) == {}


@pytest.mark.parametrize("key", sorted(all_settings()))
def test_a_setting_has_flinks_default_and_older_keys(key: str) -> None:
    setting = all_settings()[key]
    if key not in FLINKS:
        assert key.startswith(("flinkcore.", "python.fn-execution."))
        return
    default = FLINKS[key]["default"]
    if key not in OTHER_DEFAULTS:
        assert setting.default == (None if default is None else setting.type.value(key, default))
    assert set(setting.fallback_keys) <= set(FLINKS[key]["older"])


def test_the_constants_of_settings_are_those_of_the_data() -> None:
    rows = [row for meaning in Meaning for of_note in CONTENT[meaning.value].values() for row in of_note]
    assert CONTENT.keys() == {"families", *(meaning.value for meaning in Meaning)}
    assert all(
        {"key", "type"} <= row.keys() <= {"key", "type", "default", "before", "constant"} for row in rows
    )
    keys = [key for row in rows for key in (row["key"], *row.get("before", ()))]
    of_families = [key for of_note in CONTENT["families"].values() for key in of_note]
    for unique in (keys, of_families):
        assert len(unique) == len(set(unique))
    declared = [name for name, of in settings.__annotations__.items() if of.startswith("Setting[")]
    assert sorted(declared) == sorted(row["constant"] for row in rows if "constant" in row)
    assert all(isinstance(getattr(settings, name), Setting) for name in declared)
    assert not hasattr(settings, "PARALLELISMS")


def test_settings_are_read_when_the_first_is_used() -> None:
    program = """
from flinkcore.common.settings import flink_settings as settings
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
print(settings._tables.cache_info().currsize)
settings.PARALLELISM
print(settings._tables.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


def test_the_page_has_the_settings_as_they_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_with_tables(), (
        "run python tests/equipment/settings_page.py"
    )
    assert all(setting.note.endswith(".") for setting in all_settings().values())


@pytest.mark.parametrize(
    ("spelled", "nanos"),
    [
        ("1 s", 10**9),
        (" 1  s ", 10**9),
        ("1sec", 10**9),
        ("3 SECONDS", 3 * 10**9),
        ("200 ms", 2 * 10**8),
        ("200", 2 * 10**8),
        (200, 2 * 10**8),
        ("PT1S", 10**9),
        ("PT0.5S", 5 * 10**8),
        ("P1DT2H", 26 * 3600 * 10**9),
        ("1000 ns", 1000),
        ("5 micros", 5000),
        ("1 µs", 1000),
        ("1m", 60 * 10**9),
        ("2 min", 120 * 10**9),
        ("1h", 3600 * 10**9),
        ("1 day", 86400 * 10**9),
        ("0", 0),
    ],
)
def test_a_length_of_time_is_spelled_as_in_flink(spelled: object, nanos: int) -> None:
    duration = DURATION.value("a.key", spelled)
    assert duration == Duration(nanos=nanos)
    assert DURATION.value("a.key", as_text(duration)) == duration


@pytest.mark.parametrize(
    "spelled", ["-1 s", "abc", "1.5 s", "9 foo", "", "P", "PT", "P1DT", "-PT1S", True, "9" * 30]
)
def test_what_is_no_length_of_time_is_refused_by_its_key(spelled: object) -> None:
    with pytest.raises(ConfigurationError, match=r"a.key must be a length of time such as '200 ms'"):
        DURATION.value("a.key", spelled)


def test_the_units_of_time_are_named_where_one_is_unknown() -> None:
    with pytest.raises(ConfigurationError, match=r"not '9 foo': the units are d, day, .* nanoseconds"):
        DURATION.value("a.key", "9 foo")


@pytest.mark.parametrize(
    ("spelled", "size", "shown"),
    [
        ("1234567", 1234567, "1234567 bytes"),
        ("64 mb", 64 << 20, "64 mb"),
        ("64MB", 64 << 20, "64 mb"),
        ("1 kibibytes", 1024, "1 kb"),
        ("2g", 2 << 30, "2 gb"),
        ("3 tb", 3 << 40, "3 tb"),
        (5, 5, "5 bytes"),
        ("0", 0, "0 bytes"),
    ],
)
def test_a_memory_size_is_spelled_as_in_flink(spelled: object, size: int, shown: str) -> None:
    found = MEMORY_SIZE.value("a.key", spelled)
    assert found.get_bytes() == size
    assert str(found) == shown
    sizes = (found.get_kibi_bytes(), found.get_mebi_bytes(), found.get_gibi_bytes(), found.get_tebi_bytes())
    assert sizes == (size >> 10, size >> 20, size >> 30, size >> 40)


@pytest.mark.parametrize("spelled", ["", "-1", "5 feet", "1.5 mb", -1, True, "9" * 30])
def test_what_is_no_memory_size_is_refused_by_its_key(spelled: object) -> None:
    with pytest.raises(ConfigurationError, match=r"a.key must be a memory size"):
        MEMORY_SIZE.value("a.key", spelled)


@pytest.mark.parametrize(
    ("kind", "spelled", "value"),
    [
        (LIST, "a;b", ["a", "b"]),
        (LIST, "[a, 'b, c']", ["a", "b, c"]),
        (LIST, "- a\n- 'b;c'\n", ["a", "b;c"]),
        (LIST, "a; 'b;c' ;", ["a", "b;c"]),
        (LIST, "", []),
        (LIST, ["a", True, 1], ["a", "true", "1"]),
        (MAP, "a:1,b:2", {"a": "1", "b": "2"}),
        (MAP, "{a: 1, b: 'x, y'}", {"a": "1", "b": "x, y"}),
        (MAP, "a:'x:y',b:\"it's\"", {"a": "x:y", "b": "it's"}),
        (MAP, "a:'it''s'", {"a": "it's"}),
        (MAP, "", {}),
        (MAP, {"a": 1}, {"a": "1"}),
    ],
)
def test_lists_and_pairs_are_spelled_as_in_flink(
    kind: SettingType[Any], spelled: object, value: object
) -> None:
    assert kind.value("a.key", spelled) == value
    assert kind.value("a.key", as_text(value)) == value


@pytest.mark.parametrize(
    ("kind", "spelled", "reason"),
    [
        (LIST, "'a", "a quotation mark is not closed"),
        (LIST, 5, "a.key must be a list"),
        (MAP, "a", "not a pair of a name and a value"),
        (MAP, "a:b:c", "Put a value that contains a colon in quotation marks"),
        (MAP, 5, "a.key must be pairs"),
        (integer(), "1.5", "a.key must be an integer, not '1.5'"),
        (integer(), "1_0", "a.key must be an integer, not '1_0'"),
        (integer(1, 3), 4, "a.key must be an integer from 1 to 3, not 4"),
    ],
)
def test_what_is_misspelled_is_refused_by_its_key(
    kind: SettingType[Any], spelled: object, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        kind.value("a.key", spelled)


def test_a_setting_without_a_meaning_is_given_back(env: StreamExecutionEnvironment) -> None:
    env.configure(
        {
            "execution.checkpointing.interval": "10 s",
            "execution.checkpointing.mode": "exactly_once",
            "execution.checkpointing.timeout": "1 min",
            "execution.checkpointing.min-pause": "PT2S",
            "execution.checkpointing.unaligned": "true",
            "execution.checkpointing.tolerable-failed-checkpoints": "3",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.aligned-checkpoint-timeout": "3 s",
            "execution.buffer-timeout": "5 s",
            "state.savepoints.dir": "file:///savepoints",
            "state.backend.changelog.enabled": "true",
            "pipeline.object-reuse": "TRUE",
            "task.cancellation.timeout": "7 s",
        }
    )
    checkpoints = env.get_checkpoint_config()
    assert env.get_checkpoint_interval() == 10_000
    assert checkpoints.is_checkpointing_enabled()
    assert env.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert checkpoints.get_checkpoint_timeout() == 60_000
    assert checkpoints.get_min_pause_between_checkpoints() == 2000
    assert checkpoints.is_unaligned_checkpoints_enabled()
    assert checkpoints.get_tolerable_checkpoint_failure_number() == 3
    retention = checkpoints.get_externalized_checkpoint_retention()
    assert retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    assert checkpoints.get_alignment_timeout() == Duration.of_seconds(3)
    assert env.get_buffer_timeout() == 5000
    assert env.get_default_savepoint_directory() == "file:/savepoints"
    assert env.is_changelog_state_backend_enabled() is True
    assert env.get_config().is_object_reuse_enabled()
    assert env.get_config().get_task_cancellation_timeout() == 7000


def test_intervals_of_checkpoints_are_as_long_as_flink_asks_for(env: StreamExecutionEnvironment) -> None:
    for key in ("execution.checkpointing.interval", "execution.checkpointing.timeout"):
        with pytest.raises(ConfigurationError, match=f"{key} must be a length of time of at least 10 ms"):
            env.configure({key: "9 ms"})
    with pytest.raises(ConfigurationError, match=r"interval must be .* not 5"):
        env.enable_checkpointing(5)
    with pytest.raises(ConfigurationError, match=r"execution.buffer-timeout.interval must be .* not -2"):
        env.set_buffer_timeout(-2)
    with pytest.raises(ConfigurationError, match="one of CheckpointingMode, not 'EXACTLY_ONCE'"):
        env.enable_checkpointing(1000, "EXACTLY_ONCE")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="one of ExternalizedCheckpointRetention, not None"):
        env.get_checkpoint_config().set_externalized_checkpoint_retention(None)  # type: ignore[arg-type]


def test_a_new_key_counts_more_than_an_older_one(env: StreamExecutionEnvironment) -> None:
    for pair in (
        ("execution.buffer-timeout.interval", "execution.buffer-timeout"),
        ("execution.buffer-timeout",) * 2,
    ):
        env.configure(dict.fromkeys(pair, "1 s") | {pair[0]: "2 s"})
        assert env.get_buffer_timeout() == 2000


def test_a_setting_that_a_program_would_rely_on_is_refused() -> None:
    refused = [setting for setting in all_settings().values() if setting.meaning is Meaning.REFUSED]
    assert refused
    for setting in refused:
        other = {"True": "false", "False": "true"}.get(str(setting.default), "a:b")
        with pytest.raises(
            ConfigurationError, match=f"{setting.name} cannot be .*{other}.*[.] {re.escape(setting.note)}"
        ):
            list(settings_of(Configuration.from_dict({setting.name: other})))
    accepted = Configuration.from_dict({"execution.sorted-inputs.enabled": "true"})
    assert [value for _, value in settings_of(accepted)] == [True]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("pipeline.operator-chaning", "is ignored: did you mean pipeline.operator-chaining?"),
        ("execution.runtime-modus", "did you mean execution.runtime-mode?"),
        ("metrics.latency.intervall", "did you mean metrics.latency.interval?"),
        ("metrics.latency.histroy-size", "did you mean metrics.latency.history-size?"),
        ("shuffleeee", "functions read a pipeline.global-job-parameters of your own"),
        ("jobmanagers.memory", "is ignored: "),
        ("high-availabilities", "is ignored: "),
        ("city", "functions read a pipeline.global-job-parameters of your own"),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_the_nearest_one(
    env: StreamExecutionEnvironment, key: str, message: str
) -> None:
    with pytest.warns(UserWarning, match=f"there is no setting {key}, which") as warned:
        env.configure({key: "1", "parallelism.default": "3"})
    with pytest.warns(UserWarning, match=f"there is no setting {key}, which") as warned_at_once:
        StreamExecutionEnvironment.get_execution_environment(Configuration().set_string(key, "1"))
    for (warning,) in (warned, warned_at_once):
        assert message in str(warning.message)
        assert warning.filename == __file__
    assert env.get_parallelism() == 3


def test_the_settings_of_clusters_are_accepted_without_a_warning(env: StreamExecutionEnvironment) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.configure(
            {
                "jobmanager.memory.process.size": "1600m",
                "taskmanager.numberOfTaskSlots": "4",
                "rest.port": "8082",
                "state.backend.rocksdb.memory.managed": "true",
                "metrics.reporter.prom.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
                "s3.access-key": "key",
                "table.exec.state.ttl": "1 h",
                "parallelism.default": "3",
            }
        )
    assert env.get_parallelism() == 3


def test_a_job_without_generated_uids_names_each_operator(env: StreamExecutionEnvironment) -> None:
    env.get_config().disable_auto_generated_uids()
    numbers = env.from_collection([1], Types.INT()).uid("numbers")
    doubled = numbers.map(lambda number: 2 * number).name("double")
    with pytest.raises(
        ConfigurationError, match=r"double has no uid, and pipeline.auto-generate-uids is false"
    ):
        doubled.execute_and_collect()
    with doubled.uid("double").execute_and_collect() as results:
        assert list(results) == [2]
    with doubled.key_by(lambda number: "all", Types.STRING()).execute_and_collect() as results:
        assert list(results) == [Row(f0="all", f1=2)]


def test_a_job_is_restored_from_where_the_settings_say(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    env.configure({"execution.savepoint.path": str(tmp_path / "nowhere")})
    with pytest.raises(CheckpointError, match="nowhere"):
        env.from_collection([1]).execute_and_collect()


def test_python_dependencies_are_those_of_the_environments_methods(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    module = tmp_path / "words_of_settings.py"
    module.write_text("def shouted(word):\n    return word.upper()\n")
    env.configure({"python.files": f" {module}, "})

    def shouted(word: str) -> Any:
        import words_of_settings  # type: ignore[import-not-found]

        return words_of_settings.shouted(word)

    with env.from_collection(["a"]).map(shouted).execute_and_collect() as results:
        assert list(results) == ["A"]
    with pytest.raises(ConfigurationError, match=r"set_python_executable|interpreter"):
        env.configure({"python.executable": "/nowhere/python"})


def test_files_that_are_to_be_cached_are_there(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    words = tmp_path / "it's words.txt"
    words.write_text("a")
    env.configure(
        {
            "pipeline.cached-files": f'name:first,path:"{words}";name:second,path:"file://{words}",executable:true'
        }
    )
    env.register_cached_file(words, "third")
    env.register_cached_file("s3://bucket/words", "fourth", True)
    assert len(env._configuration.get(settings.CACHED_FILES)) == 4
    with pytest.raises(ConfigurationError, match="two cached files have the name 'third'"):
        env.register_cached_file(words, "third")
    with pytest.raises(SourceError, match="there is no file nowhere to be cached as 'fifth'"):
        env.register_cached_file("nowhere", "fifth")
    with pytest.raises(ConfigurationError, match="a cached file is name:NAME,path:PATH"):
        env.configure({"pipeline.cached-files": "path:a"})


def test_jars_are_accepted_and_kept(env: StreamExecutionEnvironment) -> None:
    env.configure({"pipeline.jars": "file:///a.jar;file:///b.jar"})
    env.add_jars("file:///c.jar")
    env.add_classpaths("file:///d/")
    assert env._configuration.get(settings.JARS) == ["file:///a.jar", "file:///b.jar", "file:///c.jar"]
    assert env._configuration.get(settings.CLASSPATHS) == ["file:///d/"]


def test_state_backends_and_storages_of_checkpoints_are_held(env: StreamExecutionEnvironment) -> None:
    backend = EmbeddedRocksDBStateBackend(True)
    assert backend.is_incremental_checkpoints_enabled()
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_db_storage_paths("file:///a/", "/b")
    backend.set_options("com.example.Factory")
    backend.set_number_of_transfer_threads(8)
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert (backend.get_db_storage_paths(), backend.get_options()) == (["/a", "/b"], "com.example.Factory")
    assert backend.get_number_of_transfer_threads() == 8
    assert env.set_state_backend(backend).get_state_backend() is backend
    assert isinstance(env.set_state_backend(HashMapStateBackend()).get_state_backend(), HashMapStateBackend)
    env.configure({"state.backend.type": "rocksdb"})
    assert isinstance(env.get_state_backend(), HashMapStateBackend)
    with pytest.raises(ConfigurationError, match="a state backend is one such as"):
        env.set_state_backend("rocksdb")  # type: ignore[arg-type]

    config = env.get_checkpoint_config()
    assert config.get_checkpoint_storage() is None
    config.set_checkpoint_storage_dir("file:///checkpoints")
    storage = config.get_checkpoint_storage()
    assert isinstance(storage, FileSystemCheckpointStorage)
    assert storage.get_checkpoint_path() == "file:/checkpoints"
    assert FileSystemCheckpointStorage("file://var/c/").get_checkpoint_path() == "file://var/c"
    assert (storage.get_min_file_size_threshold(), storage.get_write_buffer_size()) == (20 * 1024, 4096)
    env.configure({"execution.checkpointing.storage": "jobmanager"})
    assert str(config.get_checkpoint_storage()) == (
        "JobManagerCheckpointStorage (checkpoints to JobManager) ( maxStateSize: 5242880)"
    )
    assert config.set_checkpoint_storage(JobManagerCheckpointStorage(None, 5)) is config
    assert config.get_checkpoint_storage() == JobManagerCheckpointStorage(max_state_size=5)
    with pytest.raises(ConfigurationError, match="Give the directory of checkpoints"):
        FileSystemCheckpointStorage()


def test_restart_strategies_are_held(env: StreamExecutionEnvironment) -> None:
    fixed = RestartStrategies.fixed_delay_restart(3, 10_000)
    assert env.get_restart_strategy() == RestartStrategies.fall_back_restart()
    assert env.set_restart_strategy(fixed).get_restart_strategy() == RestartStrategies.fixed_delay_restart(
        3, timedelta(seconds=10)
    )
    assert fixed.get_description() == "Restart with fixed delay (10000 ms). #3 restart attempts."
    env.configure({"restart-strategy.fixed-delay.attempts": "5"})
    assert env.get_restart_strategy() == fixed
    env.configure({"restart-strategy": "failure-rate"})
    assert env.get_restart_strategy() == RestartStrategies.fall_back_restart()
    rate = RestartStrategies.failure_rate_restart(5, timedelta(minutes=1), 500)
    assert rate.get_failure_interval() == timedelta(minutes=1)
    assert rate.get_delay_between_attempts_interval() == timedelta(milliseconds=500)
    with pytest.raises(
        ConfigurationError, match="delay_between_attempts_interval is a number of milliseconds"
    ):
        RestartStrategies.fixed_delay_restart(3, "10 s")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a restart strategy is one of RestartStrategies"):
        env.set_restart_strategy(3)  # type: ignore[arg-type]


def test_slot_sharing_groups_hold_their_resources(env: StreamExecutionEnvironment) -> None:
    group = SlotSharingGroup.builder("g").set_cpu_cores(1.5).set_task_heap_memory_mb(100).build()
    assert (group.get_name(), group.get_cpu_cores(), group.get_external_resources()) == ("g", 1.5, {})
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(100)
    assert str(group.get_managed_memory()) == "0 bytes"
    assert SlotSharingGroup.builder("g").build().get_managed_memory() is None
    with pytest.raises(ConfigurationError, match="needs set_cpu_cores"):
        SlotSharingGroup.builder("g").set_managed_memory_mb(1).build()
    with pytest.raises(ConfigurationError, match=r"set_task_heap_memory_mb\(...\) above 0"):
        SlotSharingGroup.builder("g").set_cpu_cores(1).set_task_heap_memory_mb(0).build()
    assert env.register_slot_sharing_group(group) is env
    with pytest.raises(ConfigurationError, match=r"is made by SlotSharingGroup.builder"):
        env.register_slot_sharing_group("g")  # type: ignore[arg-type]
    stream = env.from_collection([1])
    assert stream.slot_sharing_group(group).slot_sharing_group("g") is stream
    with pytest.raises(ConfigurationError, match="a slot sharing group is a name"):
        stream.slot_sharing_group(5)  # type: ignore[arg-type]


def test_new_environments_begin_with_the_default_parallelism_of_the_process(
    env: StreamExecutionEnvironment,
) -> None:
    before = env.get_default_local_parallelism()
    try:
        env.set_default_local_parallelism(3)
        assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 3
    finally:
        env.set_default_local_parallelism(before)
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == before == -1
