"""Keys without a type may be lists, dictionaries and sets: they are compared by their content."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield repr(ctx.get_current_key()), count


def run(env: StreamExecutionEnvironment):
    keys = {
        "lists": lambda value: [value % 2, ["x"]],
        "dictionaries": lambda value: {"a": value % 2},
        "entries in another order": lambda value: {"a": 1, "b": 2} if value % 2 else {"b": 2, "a": 1},
        "sets": lambda value: {value % 2},
        "byte arrays": lambda value: bytearray([value % 2]),
        "numbers of two types": lambda value: [1] if value % 2 else [1.0],
        "nothing": lambda value: [None],
    }
    outputs = {}
    for name, key_of in keys.items():
        counts = env.from_collection([1, 2, 3, 4, 5], Types.INT()).key_by(key_of).process(Count())
        with counts.execute_and_collect() as results:
            outputs[name] = list(results)
    typed = env.from_collection([1, 2, 3, 4, 5], Types.INT()).key_by(
        lambda value: [value % 2, 3], Types.LIST(Types.INT())
    )
    with typed.process(Count()).execute_and_collect() as results:
        outputs["declared lists"] = list(results)
    return outputs
