"""A job of single elements that is killed while it writes its checkpoint leaves the old one, or the new one, whole."""

from pathlib import Path

from equipment.killed_programs import steps_of_killed
from equipment.sanitizers import no_forks

KILLED_AT_EVERY_STEP = """
    import faulthandler, os, shutil, signal, sys
    from pathlib import Path
    import pyarrow as pa
    from flinkcore.common import Encoder, Types
    from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    from flinkcore.datastream.connectors import FileSink
    from flinkcore.datastream.state import ValueStateDescriptor
    from flinkcore.checkpoint import Checkpoint, CheckpointDirectory

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    root = Path(sys.argv[1])
    checkpoint, results, other = root / "checkpoint", root / "results", root / "other"

    class Counted(KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, value, ctx):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield f"{value}:{count}"

    def run(stop, **checkpoints):
        env = StreamExecutionEnvironment().set_parallelism(2).set_clock("system")
        counted = env.from_collection(list(range(stop)), Types.LONG()).key_by(lambda n: n % 3).process(Counted())
        counted.map(lambda line: line, Types.STRING()).sink_to(
            FileSink.for_row_format(str(results), Encoder.simple_string_encoder()).build()
        )
        env.execute(**checkpoints)

    def lines():
        visible = [file for file in results.rglob("*") if file.is_file() and not file.name.startswith(".")]
        return sorted(line for file in visible for line in file.read_text().split())

    def expected(stop):
        return sorted(f"{number}:{number // 3 + 1}" for number in range(stop))

    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    class Killing:
        '''A file of which only the first half is written.'''
        def __init__(self, file):
            self.file = file
        def write(self, data):
            self.file.write(bytes(data)[: len(data) // 2])
            self.file.flush()
            kill()
        def __enter__(self):
            return self
        def __exit__(self, *error):
            kill()
        def __getattr__(self, name):
            return getattr(self.file, name)

    def kill_at(step):
        '''Let this process be killed before the step-th change of storage or results, or amid a file.'''
        steps = iter(range(step, -1, -1))
        def killing(works):
            def call(*arguments):
                if next(steps, None) == 0:
                    kill()
                return works(*arguments)
            return call
        def open_output(self, name, works=CheckpointDirectory.open_output):
            file = works(self, name)
            return Killing(file) if next(steps, None) == 0 else file
        CheckpointDirectory.open_output = open_output
        for name in ("create_folder", "move", "sync", "delete_folder", "delete_file"):
            setattr(CheckpointDirectory, name, killing(getattr(CheckpointDirectory, name)))
        os.replace = killing(os.replace)

    run(10, stop_with_checkpoint=checkpoint)
    assert lines() == expected(10)
    for path in (checkpoint, results):
        shutil.copytree(path, other / path.name)
    step, seen = 0, set()
    while True:
        for path in (checkpoint, results):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(other / path.name, path)
        before = Checkpoint.open(checkpoint).manifest
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(120, exit=True)  # a child that hangs says where
            kill_at(step)
            run(25, restore_from=checkpoint, stop_with_checkpoint=checkpoint)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        is_committed = Checkpoint.open(checkpoint).manifest != before
        assert is_committed or lines() == expected(10), step
        run(40, restore_from=checkpoint)
        assert lines() == expected(40), (step, lines())
        seen.add((status, is_committed))
        if status == 0:
            break
        step += 1
    assert seen == {(9, False), (9, True), (0, True)}, seen
    print(step)
"""


@no_forks
def test_a_job_killed_while_it_writes_its_checkpoint_goes_on_from_a_whole_one(tmp_path: Path) -> None:
    assert steps_of_killed(KILLED_AT_EVERY_STEP, tmp_path) > 20
