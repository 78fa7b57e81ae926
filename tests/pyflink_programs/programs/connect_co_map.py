"""Two streams of different types, mapped to one."""

from pyflink.common import Types
from pyflink.datastream import CoMapFunction, StreamExecutionEnvironment

ORDERED = False


class ToText(CoMapFunction):
    def map1(self, value):
        return f"number {value}"

    def map2(self, value):
        return f"word {value}" if value else None


def run(env: StreamExecutionEnvironment):
    numbers = env.from_collection([1, 2, 3], Types.INT())
    words = env.from_collection(["one", "", "three"], Types.STRING())
    texts = numbers.connect(words).map(ToText(), Types.STRING())
    with texts.execute_and_collect() as results:
        return list(results)
