"""Settings by their keys, in Flink's spellings, and their getters."""

from pyflink.common import Configuration, Duration, ExecutionConfig, Instant, Time
from pyflink.datastream import CheckpointConfig, CheckpointingMode, StreamExecutionEnvironment
from pyflink.datastream.slot_sharing_group import MemorySize, SlotSharingGroup


def intervals():
    for spelled in (
        "1 s",
        "200 ms",
        "250",
        "PT1S",
        "PT0.5S",
        "2min",
        " 1  h ",
        "1 day",
        "5 SECONDS",
        "1000 micros",
    ):
        configuration = Configuration().set_string("pipeline.auto-watermark-interval", spelled)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        yield spelled, env.get_config().get_auto_watermark_interval()


def modes():
    env = StreamExecutionEnvironment.get_execution_environment()
    checkpoints = env.get_checkpoint_config()
    checkpoints.enable_unaligned_checkpoints()
    yield checkpoints.get_checkpointing_mode().name, checkpoints.is_unaligned_checkpoints_enabled()
    env.enable_checkpointing(1000)
    yield checkpoints.get_checkpointing_mode().name, checkpoints.is_unaligned_checkpoints_enabled()
    checkpoints.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    yield checkpoints.get_checkpointing_mode().name, checkpoints.is_unaligned_checkpoints_enabled()


def refused():
    for key, value in {
        "pipeline.auto-watermark-interval": "1.5 s",
        "parallelism.default": "many",
        "execution.checkpointing.interval": "9 ms",
    }.items():
        try:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.configure(Configuration().set_string(key, value))
        except Exception:
            yield key, "refused"


def run(env):
    configuration = Configuration()
    configuration.set_string("k1", "v1").set_integer("k2", 2).set_boolean("k3", True).set_float("k4", 1.5)
    texts = [configuration.get_string(key, "none") for key in ("k1", "k2", "k3", "k4", "k5")]
    copied = Configuration(configuration)
    copied.add_all(Configuration.from_dict({"a": "b"}), "prefix.")
    removed = (copied.remove_config("k1"), copied.remove_config("k1"), sorted(copied.key_set()))

    env.configure(
        Configuration.from_dict(
            {
                "parallelism.default": "3",
                "pipeline.global-job-parameters": "city:'New York',time:'12:00'",
                "pipeline.object-reuse": "true",
                "execution.buffer-timeout": "5 s",
                "execution.checkpointing.interval": "10 s",
                "execution.checkpointing.mode": "exactly_once",
                "execution.checkpointing.timeout": "1 min",
                "execution.checkpointing.min-pause": "PT2S",
                "execution.checkpointing.tolerable-failed-checkpoints": "3",
                "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
                "state.savepoints.dir": "hdfs://host/savepoints",
            }
        )
    )
    config: ExecutionConfig = env.get_config()
    checkpoints: CheckpointConfig = env.get_checkpoint_config()
    config.set_task_cancellation_interval(7000).disable_closure_cleaner().set_use_snapshot_compression(True)
    checkpoints.set_aligned_checkpoint_timeout(Duration.of_seconds(3)).enable_unaligned_checkpoints()
    group = SlotSharingGroup.builder("group").set_cpu_cores(1.5).set_task_heap_memory_mb(100).build()
    env.register_slot_sharing_group(group).enable_changelog_state_backend(True)
    return {
        "configuration": [*texts, list(removed), str(configuration)],
        "intervals": list(intervals()),
        "refused": list(refused()),
        "modes": list(modes()),
        "environment": [
            env.get_parallelism(),
            env.get_buffer_timeout(),
            env.get_checkpoint_interval(),
            env.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE,
            env.get_default_savepoint_directory(),
            env.is_changelog_state_backend_enabled(),
            env.is_unaligned_checkpoints_enabled(),
            env.set_buffer_timeout(-1).get_buffer_timeout(),
        ],
        "execution": [
            sorted(config.get_global_job_parameters().items()),
            config.is_object_reuse_enabled(),
            config.get_task_cancellation_interval(),
            config.get_task_cancellation_timeout(),
            config.is_closure_cleaner_enabled(),
            config.is_use_snapshot_compression(),
            config.has_auto_generated_uids_enabled(),
        ],
        "checkpoints": [
            checkpoints.get_checkpoint_timeout(),
            checkpoints.get_min_pause_between_checkpoints(),
            checkpoints.get_tolerable_checkpoint_failure_number(),
            checkpoints.get_externalized_checkpoint_retention().name,
            checkpoints.get_aligned_checkpoint_timeout() == Duration.of_seconds(3),
            checkpoints.get_max_concurrent_checkpoints(),
        ],
        "texts": [
            str(Time.minutes(1)),
            str(Instant(1, 2)),
            str(MemorySize.of_mebi_bytes(64)),
            group.get_name(),
        ],
    }
