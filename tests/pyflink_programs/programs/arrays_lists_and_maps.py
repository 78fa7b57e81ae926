"""Arrays, lists and maps as fields of tuples."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    values = env.from_collection(
        [(1, ["a", None], [1.5], {"k": 1}), (2, [], [], {})],
        Types.TUPLE([
            Types.INT(),
            Types.BASIC_ARRAY(Types.STRING()),
            Types.LIST(Types.DOUBLE()),
            Types.MAP(Types.STRING(), Types.INT()),
        ]),
    )  # fmt: skip
    lengths = values.map(
        lambda value: (value[0], [len(field) for field in value[1:]], dict.fromkeys(map(str, value[1]), value[0])),
        Types.TUPLE([
            Types.INT(), Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.INT())
        ]),
    )  # fmt: skip
    with values.map(lambda value: value, values.get_type()).execute_and_collect() as results:
        passed = list(results)
    with lengths.execute_and_collect() as results:
        return {"passed": passed, "lengths": list(results)}
