"""What every setting of Flink's means to a job of flinkcore: docs/settings.md has these tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from flinkcore._internal.io.locations import absolute_location, is_local
from flinkcore.common.config_options import ConfigOption
from flinkcore.common.configuration import Configuration
from flinkcore.common.setting_types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    LIST,
    MAP,
    MEMORY_SIZE,
    SIGNED_DURATION,
    STRING,
    SettingType,
    as_text,
    duration,
    integer,
    number,
    one_of,
)
from flinkcore.errors import ConfigurationError, SourceError

T = TypeVar("T")

UPPER_BOUND_MAX_PARALLELISM: Final = 1 << 15
DEFAULT_MAX_PARALLELISM: Final = 128


class Meaning(Enum):
    """What becomes of the value of a setting."""

    OBEYED = "obeyed"
    """It does what it does in Flink."""
    WITHOUT_MEANING = "without meaning"
    """It is checked and given back by its getter; what it is about does not exist here, or changes no result."""
    REFUSED = "refused"
    """Only its default is accepted: a program that sets another value would not get what it asks for."""


@dataclass(frozen=True)
class Setting(ConfigOption[T]):
    """A setting of Flink's, and what it means here.

    Attributes
    ----------
    meaning : Meaning
    note : str
        What it does here, why it has no meaning, or what to use instead.
    """

    meaning: Meaning = Meaning.WITHOUT_MEANING
    note: str = ""


SETTINGS: Final[dict[str, Setting[Any]]] = {}
"""All settings with a key of their own, by key."""


def _defined(
    meaning: Meaning, key: str, kind: SettingType[T], default: Any, note: str, *fallback_keys: str
) -> Setting[T]:
    value = None if default is None else kind.value(key, default)
    setting = Setting(key, kind, value, fallback_keys, meaning, note)
    SETTINGS[key] = setting
    return setting


def _obeyed(key: str, kind: SettingType[T], default: Any, note: str, *fallback_keys: str) -> Setting[T]:
    return _defined(Meaning.OBEYED, key, kind, default, note, *fallback_keys)


def _without_meaning(
    key: str, kind: SettingType[T], default: Any, note: str, *fallback_keys: str
) -> Setting[T]:
    return _defined(Meaning.WITHOUT_MEANING, key, kind, default, note, *fallback_keys)


def _refused(key: str, kind: SettingType[T], default: Any, note: str, *fallback_keys: str) -> Setting[T]:
    return _defined(Meaning.REFUSED, key, kind, default, note, *fallback_keys)


PARALLELISM_DEFAULT: Final = -1
"""The parallelism that leaves the choice to the executor."""

NUMBER_OF_KEY_GROUPS: Final = integer(1, UPPER_BOUND_MAX_PARALLELISM)


def _parallelism(value: Any) -> int:
    subtasks = integer().read(value)
    return subtasks if subtasks == PARALLELISM_DEFAULT else NUMBER_OF_KEY_GROUPS.read(subtasks)


_PARALLELISM_TYPE: Final = SettingType(
    f"{NUMBER_OF_KEY_GROUPS.expected}, or {PARALLELISM_DEFAULT} for the default", _parallelism
)
_COUNT: Final = integer(0, (1 << 31) - 1)

PARALLELISM: Final = _obeyed(
    "parallelism.default",
    _PARALLELISM_TYPE,
    PARALLELISM_DEFAULT,
    "Number of subtasks of a step; without it the executor decides: embedded columnar jobs take a thread per "
    "processor, jobs of single elements one subtask.",
)
MAX_PARALLELISM: Final = _obeyed(
    "pipeline.max-parallelism",
    _PARALLELISM_TYPE,
    DEFAULT_MAX_PARALLELISM,
    "Number of key groups. Flink derives it from the parallelism; here it is 128 unless set.",
)
JOB_NAME: Final = _obeyed("pipeline.name", STRING, "Flink Streaming Job", "Name of jobs without one.")
RUNTIME_MODE: Final = _obeyed(
    "execution.runtime-mode",
    one_of("STREAMING", "BATCH", "AUTOMATIC"),
    "STREAMING",
    "As `env.set_runtime_mode(...)`. With AUTOMATIC, a job whose sources all end by themselves is a BATCH.",
)
AUTO_WATERMARK_INTERVAL: Final = _obeyed(
    "pipeline.auto-watermark-interval",
    DURATION,
    "200 ms",
    "Interval of periodic watermarks, on the job's clock.",
)
ALLOW_UNALIGNED_SOURCE_SPLITS: Final = _obeyed(
    "pipeline.watermark-alignment.allow-unaligned-source-splits",
    BOOLEAN,
    False,
    "Whether splits that cannot be paused read on.",
)
WATERMARK_ALIGNMENT_BUFFER_SIZE: Final = _obeyed(
    "pipeline.watermark-alignment.buffer-size",
    integer(0, 1 << 20),
    3,
    "Age of compared watermarks in update intervals.",
)
OPERATOR_CHAINING: Final = _obeyed(
    "pipeline.operator-chaining.enabled",
    BOOLEAN,
    True,
    "Whether operators call the next one directly where they can. Results stay the same, but for values that are not "
    "of their declared type: between the functions of a chain they pass as they are.",
    "pipeline.operator-chaining",
)
CHAINING_WITH_DIFFERENT_MAX_PARALLELISM: Final = _obeyed(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    BOOLEAN,
    True,
    "Whether operators with different maximum parallelisms are chained.",
)
GLOBAL_JOB_PARAMETERS: Final = _obeyed(
    "pipeline.global-job-parameters", MAP, {}, "Parameters that functions read with `get_job_parameter`."
)
AUTO_GENERATE_UIDS: Final = _obeyed(
    "pipeline.auto-generate-uids", BOOLEAN, True, "If false, a job with an operator without a uid is refused."
)
RESTORE_PATH: Final = _obeyed(
    "execution.state-recovery.path",
    STRING,
    None,
    "As `restore_from` of calls that do not name one: a checkpoint of flinkcore. Flink's savepoints cannot be read.",
    "execution.savepoint.path",
)
LATENCY_INTERVAL: Final = _obeyed(
    "metrics.latency.interval",
    SIGNED_DURATION,
    "0 ms",
    "Interval at which sources emit latency markers; 0 or less: they emit none.",
)
LATENCY_GRANULARITY: Final = _obeyed(
    "metrics.latency.granularity",
    one_of("single", "operator", "subtask"),
    "operator",
    "Which latency markers are measured together.",
)
LATENCY_HISTORY_SIZE: Final = _obeyed(
    "metrics.latency.history-size", integer(1, 1 << 20), 128, "How many latencies a histogram keeps."
)
PYTHON_FILES: Final = _obeyed(
    "python.files",
    STRING,
    None,
    "Modules, folders and archives of modules, separated by commas: each as `env.add_python_file(...)`.",
)
PYTHON_ARCHIVES: Final = _obeyed(
    "python.archives",
    STRING,
    None,
    "Archives, separated by commas, each with `#` and its folder if it is to have a name of its own: each as "
    "`env.add_python_archive(...)`.",
)
PYTHON_REQUIREMENTS: Final = _obeyed(
    "python.requirements",
    STRING,
    None,
    "A requirements file, with `#` and a folder of packages if there is one: as `env.set_python_requirements(...)`.",
)
PYTHON_EXECUTABLE: Final = _obeyed(
    "python.executable",
    STRING,
    None,
    "As `env.set_python_executable(...)`, which refuses an interpreter that does not run the functions.",
)
CLOCK: Final = _obeyed(
    "flinkcore.clock",
    one_of("arrival", "system"),
    "arrival",
    "What processing time is: as `env.set_clock(...)`. Not one of Flink's.",
)
PROGRESS: Final = _obeyed(
    "flinkcore.progress",
    one_of("auto", "on", "off"),
    "auto",
    "Whether columnar jobs show their progress on standard error: `auto` does where somebody looks, in a terminal or a "
    "notebook. `execute(progress=...)` takes its place. Not one of Flink's.",
)
LATE_SHARE: Final = _obeyed(
    "flinkcore.late-share-warning",
    number(0, 1),
    0.01,
    "Share of late events above which a replay warns, with the likely cause: as `set_late_share_warning(...)`. Not one "
    "of Flink's.",
)
ARRIVAL_RATE: Final = _obeyed(
    "flinkcore.arrival-rate",
    number(1e-6, 1e12),
    1000.0,
    "Elements per second and split of sources that are no event logs, on the job's clock. Not one of Flink's.",
)

_NO_PERIODIC_CHECKPOINTS: Final = "Jobs write no periodic checkpoints; `stop_with_checkpoint` writes one."
_NO_JVM: Final = "There is no JVM: elements are Python objects or Arrow data."
_IN_MEMORY: Final = "State is held in memory."
_NO_WORKER: Final = "Functions run in the process of the task, and are called for each element."
_NO_NETWORK: Final = "Elements are not buffered between tasks."
_NO_RESTARTS: Final = "A job in one process fails at once; Spark runs lost tasks again."

CHECKPOINTING_INTERVAL: Final = _without_meaning(
    "execution.checkpointing.interval", duration(10), None, _NO_PERIODIC_CHECKPOINTS
)
CHECKPOINTING_MODE: Final = _without_meaning(
    "execution.checkpointing.mode",
    one_of("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "EXACTLY_ONCE",
    "A checkpoint here always counts elements exactly once.",
)
CHECKPOINTING_TIMEOUT: Final = _without_meaning(
    "execution.checkpointing.timeout", duration(10), "10 min", _NO_PERIODIC_CHECKPOINTS
)
MIN_PAUSE_BETWEEN_CHECKPOINTS: Final = _without_meaning(
    "execution.checkpointing.min-pause", DURATION, "0 ms", _NO_PERIODIC_CHECKPOINTS
)
MAX_CONCURRENT_CHECKPOINTS: Final = _without_meaning(
    "execution.checkpointing.max-concurrent-checkpoints",
    integer(1, (1 << 31) - 1),
    1,
    _NO_PERIODIC_CHECKPOINTS,
)
TOLERABLE_FAILED_CHECKPOINTS: Final = _without_meaning(
    "execution.checkpointing.tolerable-failed-checkpoints", _COUNT, 0, _NO_PERIODIC_CHECKPOINTS
)
CHECKPOINT_RETENTION: Final = _without_meaning(
    "execution.checkpointing.externalized-checkpoint-retention",
    one_of("DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    "NO_EXTERNALIZED_CHECKPOINTS",
    _NO_PERIODIC_CHECKPOINTS,
)
UNALIGNED_CHECKPOINTS: Final = _without_meaning(
    "execution.checkpointing.unaligned.enabled",
    BOOLEAN,
    False,
    _NO_PERIODIC_CHECKPOINTS,
    "execution.checkpointing.unaligned",
)
FORCE_UNALIGNED_CHECKPOINTS: Final = _without_meaning(
    "execution.checkpointing.unaligned.forced", BOOLEAN, False, _NO_PERIODIC_CHECKPOINTS
)
ALIGNED_CHECKPOINT_TIMEOUT: Final = _without_meaning(
    "execution.checkpointing.aligned-checkpoint-timeout",
    DURATION,
    "0 ms",
    _NO_PERIODIC_CHECKPOINTS,
    "execution.checkpointing.alignment-timeout",
)
CHECKPOINT_STORAGE: Final = _without_meaning(
    "execution.checkpointing.storage", STRING, None, _NO_PERIODIC_CHECKPOINTS, "state.checkpoint-storage"
)
CHECKPOINTS_DIRECTORY: Final = _without_meaning(
    "execution.checkpointing.dir",
    STRING,
    None,
    _NO_PERIODIC_CHECKPOINTS,
    "state.checkpoints.dir",
    "state.backend.fs.checkpointdir",
)
SAVEPOINT_DIRECTORY: Final = _obeyed(
    "execution.checkpointing.savepoint-dir",
    STRING,
    None,
    "Where a `JobClient` writes savepoints if it is given no directory.",
    "state.savepoints.dir",
    "savepoints.state.backend.fs.dir",
)
SNAPSHOT_COMPRESSION: Final = _without_meaning(
    "execution.checkpointing.snapshot-compression",
    BOOLEAN,
    False,
    "Checkpoints are Parquet files, whose columns are compressed.",
)
_CHECKPOINTING: Final[tuple[tuple[Any, ...], ...]] = (
    ("incremental", BOOLEAN, False, "state.backend.incremental"),
    ("interval-during-backlog", DURATION, None),
    ("num-retained", _COUNT, 1, "state.checkpoints.num-retained"),
    ("create-subdir", BOOLEAN, True, "state.checkpoints.create-subdir"),
    ("cleaner.parallel-mode", BOOLEAN, True, "state.checkpoint.cleaner.parallel-mode"),
    (
        "data-inline-threshold",
        MEMORY_SIZE,
        "20 kb",
        "state.storage.fs.memory-threshold",
        "state.backend.fs.memory-threshold",
    ),
    (
        "write-buffer-size",
        _COUNT,
        4096,
        "state.storage.fs.write-buffer-size",
        "state.backend.fs.write-buffer-size",
    ),
    (
        "checkpoints-after-tasks-finish",
        BOOLEAN,
        True,
        "execution.checkpointing.checkpoints-after-tasks-finish.enabled",
    ),
    ("during-recovery.enabled", BOOLEAN, False),
    ("file-merging.enabled", BOOLEAN, False),
    ("file-merging.across-checkpoint-boundary", BOOLEAN, False),
    ("file-merging.max-file-size", MEMORY_SIZE, "32 mb"),
    ("file-merging.max-space-amplification", DOUBLE, 2.0),
    ("file-merging.max-subtasks-per-file", _COUNT, 4),
    ("file-merging.pool-blocking", BOOLEAN, False),
    ("local-backup.dirs", STRING, None, "taskmanager.state.local.root-dirs"),
    ("local-backup.enabled", BOOLEAN, False, "state.backend.local-recovery"),
    ("unaligned.interruptible-timers.enabled", BOOLEAN, False),
    ("unaligned.max-subtasks-per-channel-state-file", _COUNT, 5),
    ("unaligned.recover-output-on-downstream.enabled", BOOLEAN, False),
)
for _key, _kind, _default, *_older in _CHECKPOINTING:
    _without_meaning(f"execution.checkpointing.{_key}", _kind, _default, _NO_PERIODIC_CHECKPOINTS, *_older)

BUFFER_TIMEOUT: Final = _without_meaning(
    "execution.buffer-timeout.interval", DURATION, "100 ms", _NO_NETWORK, "execution.buffer-timeout"
)
BUFFER_TIMEOUT_ENABLED: Final = _without_meaning(
    "execution.buffer-timeout.enabled", BOOLEAN, True, _NO_NETWORK
)
OBJECT_REUSE: Final = _without_meaning(
    "pipeline.object-reuse",
    BOOLEAN,
    False,
    "Chained functions pass Python objects on as they are, as PyFlink's do.",
)
CLOSURE_CLEANER_LEVEL: Final = _without_meaning(
    "pipeline.closure-cleaner-level", one_of("NONE", "TOP_LEVEL", "RECURSIVE"), "RECURSIVE", _NO_JVM
)
GENERIC_TYPES: Final = _without_meaning("pipeline.generic-types", BOOLEAN, True, _NO_JVM)
FORCE_AVRO: Final = _without_meaning("pipeline.force-avro", BOOLEAN, False, _NO_JVM)
FORCE_KRYO: Final = _without_meaning("pipeline.force-kryo", BOOLEAN, False, _NO_JVM)
JARS: Final[Setting[list[str]]] = _without_meaning(
    "pipeline.jars",
    LIST,
    None,
    "There is no JVM. A connector or format that flinkcore lacks is refused where the program imports it.",
)
CLASSPATHS: Final = _without_meaning("pipeline.classpaths", LIST, None, "As `pipeline.jars`.")
CACHED_FILES: Final[Setting[list[str]]] = _without_meaning(
    "pipeline.cached-files",
    LIST,
    [],
    "Files as of `env.register_cached_file(...)`, which must exist: functions of Python cannot ask for them, "
    "in PyFlink neither.",
)
TASK_CANCELLATION_INTERVAL: Final = _without_meaning(
    "task.cancellation.interval",
    DURATION,
    "30 s",
    "A cancelled job ends between two elements.",
    "task.cancellation-interval",
)
TASK_CANCELLATION_TIMEOUT: Final = _without_meaning(
    "task.cancellation.timeout", DURATION, "3 min", "A cancelled job ends between two elements."
)
STATE_CHANGELOG: Final = _without_meaning(
    "state.changelog.enabled", BOOLEAN, None, _IN_MEMORY, "state.backend.changelog.enabled"
)
RESTART_STRATEGY: Final = _without_meaning(
    "restart-strategy.type", STRING, None, _NO_RESTARTS, "restart-strategy"
)
_RESTART_STRATEGIES: Final[tuple[tuple[Any, ...], ...]] = (
    ("fixed-delay.attempts", _COUNT, 1),
    ("fixed-delay.delay", DURATION, "1 s"),
    ("failure-rate.max-failures-per-interval", _COUNT, 1),
    ("failure-rate.failure-rate-interval", DURATION, "1 min"),
    ("failure-rate.delay", DURATION, "1 s"),
    ("exponential-delay.attempts-before-reset-backoff", _COUNT, (1 << 31) - 1),
    ("exponential-delay.backoff-multiplier", DOUBLE, 1.5),
    ("exponential-delay.initial-backoff", DURATION, "1 s"),
    ("exponential-delay.jitter-factor", DOUBLE, 0.1),
    ("exponential-delay.max-backoff", DURATION, "1 min"),
    ("exponential-delay.reset-backoff-threshold", DURATION, "1 h"),
)
for _key, _kind, _default in _RESTART_STRATEGIES:
    _without_meaning(f"restart-strategy.{_key}", _kind, _default, _NO_RESTARTS)

_OTHERS: Final[tuple[tuple[Any, ...], ...]] = (
    ("execution.attached", BOOLEAN, False, "`execute()` waits for the job, `execute_async()` does not."),
    ("execution.target", STRING, None, "The environment decides: this process, or its Spark session."),
    ("execution.shutdown-on-attached-exit", BOOLEAN, False, "A job ends with its program at the latest."),
    (
        "execution.program-config.enabled",
        BOOLEAN,
        True,
        "Programs may set everything.",
        "execution.allow-client-job-configurations",
    ),
    ("execution.program-config.wildcards", LIST, [], "Programs may set everything."),
    (
        "execution.batch-shuffle-mode",
        one_of(
            "ALL_EXCHANGES_PIPELINED",
            "ALL_EXCHANGES_BLOCKING",
            "ALL_EXCHANGES_HYBRID_FULL",
            "ALL_EXCHANGES_HYBRID_SELECTIVE",
        ),
        "ALL_EXCHANGES_BLOCKING",
        _NO_NETWORK,
    ),
    ("execution.sort-partition.memory", MEMORY_SIZE, "128 mb", "There are no sorts of partitions."),
    ("execution.sort-keyed-partition.memory", MEMORY_SIZE, "128 mb", "There are no sorts of partitions."),
    ("execution.sorted-inputs.memory", MEMORY_SIZE, "128 mb", "Elements are sorted in memory."),
    (
        "execution.state-recovery.claim-mode",
        one_of("NO_CLAIM", "CLAIM", "LEGACY"),
        "NO_CLAIM",
        "A checkpoint is never changed by the job that is restored from it.",
        "execution.savepoint-restore-mode",
    ),
    ("execution.state-recovery.from-local", BOOLEAN, False, _NO_PERIODIC_CHECKPOINTS),
    (
        "execution.state-recovery.approximate-local-recovery",
        BOOLEAN,
        False,
        _NO_PERIODIC_CHECKPOINTS,
        "execution.checkpointing.approximate-local-recovery",
    ),
    (
        "execution.state-recovery.without-channel-state.checkpoint-id",
        integer(),
        -1,
        "A checkpoint has no elements in flight.",
        "execution.checkpointing.recover-without-channel-state.checkpoint-id",
    ),
    ("pipeline.force-kryo-avro", BOOLEAN, None, _NO_JVM),
    ("pipeline.serialization-config", LIST, None, _NO_JVM),
    ("pipeline.sources.pause-until-first-checkpoint", BOOLEAN, False, _NO_PERIODIC_CHECKPOINTS),
    ("pipeline.vertex-description-mode", one_of("TREE", "CASCADING"), "TREE", "There is no web interface."),
    ("pipeline.vertex-name-include-index-prefix", BOOLEAN, False, "There is no web interface."),
    ("pipeline.cep.sharedbuffer.cache.entry-slots", _COUNT, 1024, "There is no CEP."),
    ("pipeline.cep.sharedbuffer.cache.event-slots", _COUNT, 1024, "There is no CEP."),
    ("pipeline.cep.sharedbuffer.cache.statistics-interval", DURATION, "30 min", "There is no CEP."),
    (
        "python.client.executable",
        STRING,
        "python",
        "The program runs in the interpreter that it was started with.",
    ),
    ("python.execution-mode", one_of("process", "thread"), "process", _NO_WORKER),
    ("python.fn-execution.arrow.batch.size", _COUNT, 1000, _NO_WORKER),
    ("python.fn-execution.bundle.size", _COUNT, 1000, _NO_WORKER),
    ("python.fn-execution.bundle.time", integer(), 1000, _NO_WORKER),
    ("python.fn-execution.memory.managed", BOOLEAN, True, _NO_WORKER),
    ("python.fn-execution.buffer.memory.size", MEMORY_SIZE, None, _NO_WORKER),
    ("python.fn-execution.framework.memory.size", MEMORY_SIZE, None, _NO_WORKER),
    ("python.logging.default.level", STRING, "INFO", "Functions log as the program has set up `logging`."),
    ("python.logging.level.overrides", MAP, None, "Functions log as the program has set up `logging`."),
    ("python.map-state.iterate-response-batch-size", _COUNT, 1000, _NO_WORKER),
    ("python.map-state.read-cache-size", _COUNT, 1000, _NO_WORKER),
    ("python.map-state.write-cache-size", _COUNT, 1000, _NO_WORKER),
    ("python.metric.enabled", BOOLEAN, True, "Metrics of functions are counted anyway."),
    (
        "python.operator-chaining.enabled",
        BOOLEAN,
        True,
        "`pipeline.operator-chaining.enabled` is obeyed.",
    ),
    (
        "python.profile.enabled",
        BOOLEAN,
        False,
        "Run the program under a profiler: functions run in its process.",
    ),
    ("python.state.cache-size", _COUNT, 1000, _NO_WORKER),
    (
        "python.systemenv.enabled",
        BOOLEAN,
        True,
        "Functions see the environment of the process that they run in.",
    ),
    ("state.backend.type", STRING, "hashmap", _IN_MEMORY, "state.backend"),
    ("scheduler-mode", STRING, None, "There is no cluster of Flink's."),
)
for _key, _kind, _default, _note, *_older in _OTHERS:
    _without_meaning(_key, _kind, _default, _note, *_older)

_REFUSED: Final[tuple[tuple[Any, ...], ...]] = (
    (
        "execution.state-recovery.ignore-unclaimed-state",
        BOOLEAN,
        False,
        "A job is restored from a checkpoint of the same steps.",
        "execution.savepoint.ignore-unclaimed-state",
    ),
    (
        "execution.sorted-inputs.enabled",
        BOOLEAN,
        True,
        "In the mode BATCH the elements of a key come together.",
    ),
    (
        "execution.batch-state-backend.enabled",
        BOOLEAN,
        True,
        "In the mode BATCH the elements of a key come together.",
    ),
    (
        "execution.job-listeners",
        LIST,
        None,
        "They are Java classes: take the JobClient of `execute_async()`.",
    ),
    (
        "execution.job-status-changed-listeners",
        LIST,
        None,
        "They are Java classes: take the JobClient of `execute_async()`.",
    ),
    (
        "pipeline.jobvertex-parallelism-overrides",
        MAP,
        {},
        "The ids are of a cluster: take `set_parallelism(...)`.",
    ),
    ("python.pythonpath", STRING, None, "Take `python.files`, or set PYTHONPATH for the program and Spark."),
)
for _key, _kind, _default, _note, *_older in _REFUSED:
    _refused(_key, _kind, _default, _note, *_older)

_NO_CLUSTER: Final = "There is no cluster of Flink's: a job runs in this process or on Spark."
_NO_TABLES: Final = "There is no Table API."
_NO_WEB: Final = "There is no web interface."
_OTHER_METRICS: Final = "Metrics are in the `JobExecutionResult`."

FAMILIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "akka.",
            "application-result-store.",
            "blob.",
            "classloader.",
            "cleanup-strategy",
            "cleanup-strategy.",
            "client.",
            "cluster.",
            "compiler.",
            "completed-application-store.",
            "containerized.",
            "env.",
            "execution.batch.",
            "execution.shutdown-on-application-finish",
            "execution.submit-failed-job-on-application-error",
            "execution.terminate-application-on-any-job-terminated-exceptionally",
            "external-resource.",
            "external-resources",
            "flink.hadoop.",
            "flink.yarn.",
            "heartbeat.",
            "high-availability",
            "high-availability.",
            "io.tmp.dirs",
            "jmx.",
            "job-event.",
            "job-result-store.",
            "job-manager.",
            "jobmanager.",
            "jobstore.",
            "kubernetes.",
            "library-cache-manager.",
            "local.number-taskmanager",
            "minicluster.",
            "pekko.",
            "plugin.",
            "process.",
            "query.",
            "queryable-state.",
            "recovery.",
            "resourcemanager.",
            "security.",
            "shuffle-service-factory.",
            "slot.",
            "slotmanager.",
            "slow-task-detector.",
            "task.cancellation.timers.",
            "taskmanager.",
            "timerservice.exceptional.shutdown.timeout",
            "user.artifacts.",
            "yarn.",
            "zookeeper.",
        ),
        _NO_CLUSTER,
    ),
    **dict.fromkeys(("historyserver.", "rest.", "web."), _NO_WEB),
    **dict.fromkeys(("metrics.", "traces.", "events."), _OTHER_METRICS),
    **dict.fromkeys(
        (
            "dstl.dfs.",
            "state.backend.async",
            "state.backend.changelog.",
            "state.backend.forst.",
            "state.backend.latency-track.",
            "state.backend.rocksdb.",
            "state.changelog.",
            "state.latency-track.",
            "state.size-track.",
            "execution.async-state.",
        ),
        _IN_MEMORY,
    ),
    **dict.fromkeys(
        ("fs.", "s3.", "s3a.", "gs.", "presto.s3."),
        "Object stores take the settings of the Spark session, or those of the environment.",
    ),
    "sink.committer.": "A result is written once, when its job has ended.",
    "source.reader.": "Sources have no threads and queues of their own.",
    **dict.fromkeys(("sql-client.", "sql-gateway.", "table."), _NO_TABLES),
    "python.internal.": "Set by PyFlink itself.",
    **dict.fromkeys(("python.job-options", "python.loopback-server."), "Set by PyFlink itself."),
}
"""Keys that have no meaning here, and why: all that begin so where it ends with a dot, else this one.

A key with a meaning of its own comes first.
"""

_CANONICAL: Final = {
    key: setting for setting in SETTINGS.values() for key in (*setting.fallback_keys, setting.name)
}


_WITH_MEANING: Final = [
    key for key, setting in _CANONICAL.items() if setting.meaning is not Meaning.WITHOUT_MEANING
]


def check_settings(configuration: Configuration) -> None:
    """Raise a ConfigurationError if a setting of a configuration is invalid, or is refused."""
    for _ in settings_of(configuration):
        pass


def settings_of(configuration: Configuration) -> Iterator[tuple[Setting[Any], Any]]:
    """Yield the settings of a configuration that have a key of their own, with their values.

    Raises
    ------
    ConfigurationError
        If a value is invalid, or refused.
    """
    for key, given in configuration.entries():
        setting = _CANONICAL.get(key)
        if setting is None:
            continue
        if key != setting.name and configuration.contains_key(setting.name):
            continue  # as in Flink, an older key counts where the newer one is not set
        value = setting.type.value(key, given)
        if setting.meaning is Meaning.REFUSED and value != setting.default:
            raise ConfigurationError(f"{key} cannot be {as_text(value)!r}. {setting.note}")
        yield setting, value


def check_cached_files(entries: Sequence[str]) -> None:
    """Check the files of ``pipeline.cached-files``: ``name:words,path:'file:///data/words.txt',executable:false``.

    Raises
    ------
    ConfigurationError
        If one has no name or path, or two have one name.
    SourceError
        If a local file is not there.
    """
    names = set()
    for entry in entries:
        file = MAP.value(CACHED_FILES.name, entry)
        if not {"name", "path"} <= file.keys() <= {"name", "path", "executable"} or not file["name"]:
            raise ConfigurationError(f"a cached file is name:NAME,path:PATH, not {entry!r}")
        if file["name"] in names:
            raise ConfigurationError(
                f"two cached files have the name {file['name']!r}: give each one of its own"
            )
        names.add(file["name"])
        path = absolute_location(file["path"])
        if is_local(path) and not os.path.exists(path):
            raise SourceError(f"there is no file {file['path']} to be cached as {file['name']!r}")


def is_of_family(key: str) -> bool:
    """Return whether a key is one of FAMILIES."""
    return any(key.startswith(family) if family.endswith(".") else key == family for family in FAMILIES)


def unknown_settings(configuration: Configuration) -> dict[str, str]:
    """Return what is to be said of keys that are no settings, by key."""
    unknown = (key for key, _ in configuration.entries() if key not in _CANONICAL)
    return {key: warning for key in unknown if (warning := _warning_of(key)) is not None}


def _warning_of(key: str) -> str | None:
    from difflib import get_close_matches

    if is_of_family(key):
        near = get_close_matches(key, _WITH_MEANING, 1, 0.85)  # a slip, where keys of Flink have 0.75 at most
        if not near:
            return None
    else:
        near = get_close_matches(key, _CANONICAL, 1, 0.75)
    hint = (
        f"did you mean {near[0]}?" if near else "functions read a pipeline.global-job-parameters of your own"
    )
    return f"there is no setting {key}, which is ignored: {hint}"
