"""Fields of tuples by position, names and ids of steps, settings of the environment."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    env.set_max_parallelism(16)
    tuples = env.from_collection(
        [(1, "a", 1.5, True), (2, "b", 2.5, False)],
        Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()]),
    ).name("tuples")
    swapped = tuples.project(2, 0)
    doubled = (
        swapped.map(lambda value: (value[0] * 2, value[1]), Types.TUPLE([Types.DOUBLE(), Types.INT()]))
        .name("double")
        .uid("double-1")
        .set_parallelism(1)
        .disable_chaining()
    )
    name = doubled.get_name()  # a stream has none any more once its results were collected
    with doubled.execute_and_collect() as results:
        values = list(results)
    return {
        "values": values,
        "name": [name],
        "parallelism": [env.get_parallelism(), env.get_max_parallelism()],
    }
