"""A process function that sends alerts and bad readings to side outputs of their own."""

from pyflink.common import Types
from pyflink.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

HOT = OutputTag("hot", Types.STRING())
BROKEN = OutputTag("broken", Types.TUPLE([Types.STRING(), Types.DOUBLE()]))

READINGS = [("oven", 180.0), ("hall", 21.5), ("yard", -300.0), ("oven", 255.5), ("hall", 19.0)]


class Sort(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        name, degrees = value
        if degrees < -273.15:
            yield BROKEN, value
            return
        if degrees > 200:
            yield HOT, f"{name} is at {degrees}"
        yield value


def run(env: StreamExecutionEnvironment):
    sorted_readings = env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.DOUBLE()])).process(
        Sort(), Types.TUPLE([Types.STRING(), Types.DOUBLE()])
    )
    collected = {}
    for name, stream in {
        "readings": sorted_readings,
        "hot": sorted_readings.get_side_output(HOT),
        "broken": sorted_readings.get_side_output(BROKEN),
    }.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
