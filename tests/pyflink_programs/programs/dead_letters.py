"""Parses JSON; what cannot be parsed goes to a side output with its error."""

import json

from pyflink.common import Row, Types
from pyflink.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

DEAD = OutputTag("dead letters", Types.TUPLE([Types.STRING(), Types.STRING()]))

LINES = ['{"id": 1, "tel": 123}', "{id: 2}", '{"id": 3}', '{"id": 4, "tel": 44, "more": []}', "[]"]


class Parse(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        try:
            parsed = json.loads(value)
            yield Row(parsed["id"], parsed["tel"])
        except (ValueError, KeyError, TypeError) as error:
            yield DEAD, (value, type(error).__name__)


def run(env: StreamExecutionEnvironment):
    parsed = env.from_collection(LINES, Types.STRING()).process(
        Parse(), Types.ROW_NAMED(["id", "tel"], [Types.INT(), Types.LONG()])
    )
    collected = {}
    for name, stream in {"parsed": parsed, "dead": parsed.get_side_output(DEAD)}.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
