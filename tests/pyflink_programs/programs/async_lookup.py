"""Orders are enriched by a service that takes its time, several at once: in their order, and as answers come."""

import asyncio

from pyflink.common import Row, Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, RuntimeContext, StreamExecutionEnvironment

MODE = "process"


class Lookup(AsyncFunction[Row, Row]):
    def open(self, runtime_context: RuntimeContext):
        self.prices = {"tea": 3, "coffee": 5, "cake": 7}

    async def async_invoke(self, value: Row) -> list[Row]:
        await asyncio.sleep(0.05 / (value.amount + 1))
        if value.item not in self.prices:
            return []
        lines = [Row(value.item, value.amount * self.prices[value.item])]
        if value.amount > 3:
            lines.append(Row("discount", -1))
        return lines


def run(env: StreamExecutionEnvironment):
    order = Types.ROW_NAMED(["item", "amount"], [Types.STRING(), Types.INT()])
    line = Types.ROW_NAMED(["item", "price"], [Types.STRING(), Types.INT()])
    orders = env.from_collection(
        [Row("tea", 1), Row("coffee", 2), Row("water", 1), Row("cake", 4), Row("tea", 9)], order
    )
    in_order = AsyncDataStream.ordered_wait(orders, Lookup(), Time.seconds(20), 10, line)
    as_they_come = AsyncDataStream.unordered_wait(orders, Lookup(), Time.seconds(20), output_type=line)
    with in_order.execute_and_collect() as results:
        ordered = list(results)
    with as_they_come.map(lambda row: f"{row[0]} {row[1]}", Types.STRING()).execute_and_collect() as results:
        return {"ordered": ordered, "unordered": sorted(results)}
