"""Items of a colour are matched by pairs of shapes that rules name, as in the documentation of broadcast state."""

from pyflink.common import Types
from pyflink.datastream import KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor

ORDERED = False

RULES = [("corners", ("square", "triangle")), ("twice", ("circle", "circle"))]
ITEMS = [
    ("red", "square"), ("blue", "circle"), ("red", "circle"), ("red", "triangle"), ("blue", "circle"),
    ("blue", "triangle"), ("red", "square"), ("red", "square"), ("red", "triangle"),
]  # fmt: skip


class Matches(KeyedBroadcastProcessFunction):
    """What comes before the rules waits for a timer at the end of the input."""

    def __init__(self):
        self.rule_state = MapStateDescriptor(
            "RulesBroadcastState", Types.STRING(), Types.PICKLED_BYTE_ARRAY()
        )
        self.waiting = None

    def open(self, ctx: RuntimeContext):
        self.waiting = ctx.get_map_state(
            MapStateDescriptor("waiting", Types.LONG(), Types.LIST(Types.STRING()))
        )

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        name, rule = value
        ctx.get_broadcast_state(self.rule_state).put(name, rule)

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        shapes = self.waiting.get(0) or []
        self.waiting.put(0, [*shapes, value[1]])
        ctx.timer_service().register_event_time_timer(1)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        colour = ctx.get_current_key()
        for name, (first, second) in sorted(ctx.get_broadcast_state(self.rule_state).items()):
            stored = 0
            for shape in self.waiting.get(0):
                if shape == second and stored:
                    yield f"MATCH {name}: {stored} {colour} {first} - {second}"
                    stored = 0
                if shape == first:
                    stored += 1
        self.waiting.remove(0)


def run(env: StreamExecutionEnvironment):
    matches = Matches()
    rules = env.from_collection(RULES).broadcast(matches.rule_state)
    found = (
        env.from_collection(ITEMS, Types.TUPLE([Types.STRING(), Types.STRING()]))
        .key_by(lambda item: item[0], Types.STRING())
        .connect(rules)
        .process(matches, Types.STRING())
    )
    with found.execute_and_collect() as results:
        return list(results)
