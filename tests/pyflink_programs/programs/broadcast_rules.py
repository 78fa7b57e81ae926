"""A broadcast process function without keys: rules are kept and shown, values pass."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

ORDERED = False

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class KeepRules(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        rules = ctx.get_broadcast_state(RULES)
        yield "value", value, int(rules.contains("z"))

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        rules = ctx.get_broadcast_state(RULES)
        name, limit = value
        if limit < 0:
            rules.remove(name)
        else:
            rules.put(name, limit)
        total = sum(kept for _, kept in rules.items())
        yield "rule", total, int(rules.contains("a"))


def run(env: StreamExecutionEnvironment):
    rules = env.from_collection(
        [("a", 1), ("b", 10), ("a", 100), ("c", 1_000), ("a", -1)], Types.TUPLE([Types.STRING(), Types.INT()])
    )
    passed = (
        env.from_collection([1, 2, 3], Types.INT())
        .connect(rules.broadcast(RULES))
        .process(KeepRules(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()]))
    )
    with passed.execute_and_collect() as results:
        return list(results)
