"""Counts pages per user in map state, with all that a map state can do."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor

VISITS = [
    ("ann", "home"), ("ann", "cart"), ("bob", "home"), ("ann", "home"), ("ann", "forget cart"), ("ann", "cart"),
    ("bob", "forget cart"), ("bob", "clear"), ("bob", "help"),
]  # fmt: skip


class Pages(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.visits = runtime_context.get_map_state(MapStateDescriptor("visits", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        user, page = value
        if page == "clear":
            self.visits.clear()
        elif page.startswith("forget "):
            self.visits.remove(page.removeprefix("forget "))
        elif page in self.visits:
            self.visits[page] += 1
        else:
            self.visits.put(page, 1)
        counts = ",".join(f"{name}={count}" for name, count in sorted(self.visits.items()))
        yield user, counts, len(list(self.visits.keys())), sum(self.visits.values()), self.visits.get("cart")


def run(env: StreamExecutionEnvironment):
    counts = (
        env.from_collection(VISITS, Types.TUPLE([Types.STRING(), Types.STRING()]))
        .key_by(lambda visit: visit[0], key_type=Types.STRING())
        .process(Pages())
    )
    with counts.execute_and_collect() as results:
        return list(results)
