"""What contexts give as the timestamp of elements that have none, and timers that are counted from it."""

from pyflink.common import Types
from pyflink.datastream import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Alone(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        yield str(value), ctx.timestamp()


class OfTwo(CoProcessFunction):
    def process_element1(self, value, ctx: "CoProcessFunction.Context"):
        yield f"first {value}", ctx.timestamp()

    def process_element2(self, value, ctx: "CoProcessFunction.Context"):
        yield f"second {value}", ctx.timestamp()


class WithTimer(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 60_000)
        yield f"element {value}", ctx.timestamp()

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"timer of {ctx.get_current_key()}", ctx.timestamp()


class WithTimerOfTwo(KeyedCoProcessFunction):
    def process_element1(self, value, ctx: "KeyedCoProcessFunction.Context"):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)
        yield f"first {value}", ctx.timestamp()

    def process_element2(self, value, ctx: "KeyedCoProcessFunction.Context"):
        yield f"second {value}", ctx.timestamp()

    def on_timer(self, timestamp, ctx: "KeyedCoProcessFunction.OnTimerContext"):
        yield "timer", ctx.timestamp()


ORDERED = False


def run(env):
    def numbers(*values):
        return env.from_collection(list(values), Types.INT())

    outputs = {"alone": list(numbers(1, 2).process(Alone(), PAIR).execute_and_collect())}
    outputs["of two"] = list(numbers(1).connect(numbers(2)).process(OfTwo(), PAIR).execute_and_collect())
    keyed = numbers(1, 2).key_by(lambda value: value % 2, Types.INT())
    outputs["with timers"] = list(keyed.process(WithTimer(), PAIR).execute_and_collect())
    both = [numbers(value).key_by(lambda value: 0, Types.INT()) for value in (1, 2)]
    outputs["with timers of two"] = list(
        both[0].connect(both[1]).process(WithTimerOfTwo(), PAIR).execute_and_collect()
    )
    return outputs
