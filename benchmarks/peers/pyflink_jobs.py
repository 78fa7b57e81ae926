"""Jobs of PyFlink's DataStream API; run by the Python of an environment that has PyFlink, in a process of its own.

    python -I pyflink_jobs.py JOB MODE EVENTS KEYS

Prints a line of JSON with the events, the net run time and the CPU time of a run with a tenth of them, then of one
with all. -I keeps the folder of this file, whose `pyflink.py` is another module, out of the path.

../flinkcore_programs.py runs this program by flinkcore, unedited.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows

GAP_MS = 3_000
EVENTS_PER_MS = 10
WINDOW_MS = 10_000
SEED = 5

EVENT = [Types.LONG(), Types.LONG()]
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class CountUntilQuiet(KeyedProcessFunction):
    """The function of benchmarks/inactivity.py: a value and a timer per key, both renewed by every element."""

    def open(self, runtime_context):
        self._state = runtime_context.get_state(
            ValueStateDescriptor("count and timer", Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        held = self._state.value()
        if held is None:
            count = 1
        else:
            count = held[0] + 1
            timers.delete_event_time_timer(held[1])
        timer_ms = ctx.timestamp() + GAP_MS
        timers.register_event_time_timer(timer_ms)
        self._state.update((count, timer_ms))

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self._state.value()[0]
        self._state.clear()


class CountSumMax(AggregateFunction):
    def create_accumulator(self):
        return 0, 0, -1

    def add(self, value, accumulator):
        n, total, top = accumulator
        return n + 1, total + value[1], max(top, value[1])

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1], max(acc_a[2], acc_b[2])


def events(count, keys):
    random = np.random.default_rng(SEED)
    columns = random.integers(0, keys, count), np.arange(count) // EVENTS_PER_MS
    return list(zip(*(column.tolist() for column in columns), strict=True))


def keyed(stream):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    stream = stream.assign_timestamps_and_watermarks(strategy)
    return stream.key_by(lambda event: event[0], key_type=Types.LONG())


def inactivity(stream):
    return keyed(stream).process(CountUntilQuiet(), Types.TUPLE(EVENT))


def tumbling_windows(stream):
    return (
        keyed(stream)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .aggregate(
            CountSumMax(),
            accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]),
            output_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]),
        )
    )


def map_filter_reduce(stream):
    return (
        stream.map(lambda event: (event[0], event[1] + 1), Types.TUPLE(EVENT))
        .filter(lambda event: event[1] % 4 != 0)
        .key_by(lambda event: event[0], key_type=Types.LONG())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


JOBS = {job.__name__: job for job in (inactivity, tumbling_windows, map_filter_reduce)}


def cpu_seconds():
    """CPU time of this process and of its JVM: functions run there in thread mode, here in process mode."""
    total = 0
    children = [Path(f"/proc/{os.getpid()}/task/{task}/children") for task in os.listdir("/proc/self/task")]
    pids = [pid for file in children for pid in file.read_text().split()]
    for pid in [str(os.getpid()), *pids]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS_PER_S


def flinks_discarding_sink():
    from pyflink.datastream.connectors.base import Sink
    from pyflink.java_gateway import get_gateway

    return Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink())


def run(job, mode, count, keys, discarding_sink):
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("python.client.executable", sys.executable)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    env.get_config().enable_object_reuse()
    result = job(env.from_collection(events(count, keys), Types.TUPLE(EVENT)))
    result.sink_to(discarding_sink())
    cpu = cpu_seconds()
    begin = time.perf_counter()
    done = env.execute()
    return {
        "events": count,
        "seconds": done.get_net_runtime() / 1000,
        "wall_seconds": time.perf_counter() - begin,
        "cpu_seconds": cpu_seconds() - cpu,
    }


def main(discarding_sink=flinks_discarding_sink):
    """Run the job that the command line names; the sink is all that is not the same in PyFlink and flinkcore."""
    name, mode, count, keys = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    # PyFlink's thread mode asks the `python` on the PATH where its library is.
    os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
    runs = [run(JOBS[name], mode, size, keys, discarding_sink) for size in (count // 10, count)]
    print(json.dumps(runs), flush=True)


if __name__ == "__main__":
    main()
