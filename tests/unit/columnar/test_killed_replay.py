"""A replay that is killed between its results and its checkpoint leaves a state from which one can go on."""

from pathlib import Path

from equipment.killed_programs import steps_of_killed
from equipment.sanitizers import no_forks

KILLED_AT_EVERY_STEP = """
    import faulthandler, os, shutil, signal, sys
    from pathlib import Path
    import pyarrow as pa
    import pyarrow.dataset as ds
    from flinkcore.common import Time, WatermarkStrategy
    from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
    from flinkcore.datastream.aggregates import count
    from flinkcore.columnar.outputs.parquet_directory import ParquetOutput
    from flinkcore.columnar.outputs.parquet_parts import ParquetPart
    from flinkcore.checkpoint import Checkpoint, CheckpointDirectory

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    root = Path(sys.argv[1])
    checkpoint, results = root / "checkpoint", root / "results"

    def windows(*arrivals):
        env = StreamExecutionEnvironment().set_parallelism(1)
        users = pa.array([f"u{at % 3}" for at in arrivals], pa.string())
        log = pa.table({"at": pa.array(arrivals, pa.int64()), "user": users})
        return (
            env.from_event_log(log, timestamp="at", arrival="at")
            .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
            .key_by("user")
            .window(TumblingEventTimeWindows.of(Time.seconds(1)))
            .aggregate(n=count())
        )

    def kill_at(step: int) -> None:
        '''Let this process be killed before the storage, or the results, change for the step-th time.'''
        steps = iter(range(step, -1, -1))
        def killing(works):
            def call(*arguments):
                if next(steps, None) == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return works(*arguments)
            return call
        for owner, names in (
            (CheckpointDirectory, ("create_folder", "open_output", "move", "delete_folder", "delete_file")),
            (ParquetOutput, ("prepare", "publish", "finish")),
            (ParquetPart, ("__init__", "close")),
        ):
            for name in names:
                setattr(owner, name, killing(getattr(owner, name)))

    def run(to: Path):
        return windows(*TODAY).write_parquet(to, restore_from=checkpoint, stop_with_checkpoint=checkpoint)

    TODAY = 1500, 2500, 2600, 4700
    windows(100, 900, 1100, 1200).execute(stop_with_checkpoint=checkpoint).to_arrow()
    shutil.copytree(checkpoint, root / "yesterday")
    run(root / "expected")
    expected = ds.dataset(root / "expected").to_table().to_pylist()
    end = windows().execute(restore_from=checkpoint).to_arrow().to_pylist()
    assert expected and end
    step, seen = 0, set()
    while True:
        for path, origin in ((results, None), (checkpoint, root / "yesterday")):
            shutil.rmtree(path, ignore_errors=True)
            if origin is not None:
                shutil.copytree(origin, path)
        before = Checkpoint.open(checkpoint).manifest
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(120, exit=True)  # a child that hangs says where
            kill_at(step)
            run(results)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        manifest = Checkpoint.open(checkpoint).manifest
        is_complete = results.exists() and not (results / "_temporary").exists()
        is_committed = manifest != before
        if is_complete:
            assert is_committed or not list(results.iterdir()), step
        if is_committed:
            # The results are all there, also where `_temporary` is, and the checkpoint names them.
            assert manifest.job["results"] == [str(results)]
            assert ds.dataset(sorted(map(str, results.glob("*.parquet")))).to_table().to_pylist() == expected
        else:
            shutil.rmtree(results, ignore_errors=True)
            run(results)
            assert ds.dataset(results).to_table().to_pylist() == expected
        assert windows().execute(restore_from=checkpoint).to_arrow().to_pylist() == end
        seen.add((status, is_committed, is_complete))
        if status == 0:
            break
        step += 1
    assert {(9, False, False), (9, True, False), (0, True, True)} <= seen, seen
    print(step)
"""


@no_forks
def test_a_replay_killed_at_any_step_leaves_results_and_checkpoint_that_agree(tmp_path: Path) -> None:
    assert steps_of_killed(KILLED_AT_EVERY_STEP, tmp_path) > 8
