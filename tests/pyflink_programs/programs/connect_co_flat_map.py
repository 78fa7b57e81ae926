"""A control stream blocks words for good; both streams are keyed, and words wait for no control."""

from pyflink.common import Types
from pyflink.datastream import CoFlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

ORDERED = False


class CountBoth(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.first = runtime_context.get_state(ValueStateDescriptor("first", Types.INT()))
        self.second = runtime_context.get_state(ValueStateDescriptor("second", Types.INT()))

    def flat_map1(self, value):
        self.first.update((self.first.value() or 0) + 1)
        yield value, "first", self.first.value()

    def flat_map2(self, value):
        self.second.update((self.second.value() or 0) + 1)
        if self.second.value() % 2 == 0:
            yield value, "second", self.second.value()


def run(env: StreamExecutionEnvironment):
    control = env.from_collection(["drop", "ignore", "drop"], Types.STRING()).key_by(
        lambda word: word, key_type=Types.STRING()
    )
    words = env.from_collection(
        ["data", "drop", "artisans", "ignore", "drop", "data"], Types.STRING()
    ).key_by(lambda word: word, key_type=Types.STRING())
    counts = control.connect(words).flat_map(
        CountBoth(), Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])
    )
    with counts.execute_and_collect() as results:
        return list(results)
