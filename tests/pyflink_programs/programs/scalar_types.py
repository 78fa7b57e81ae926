"""Booleans, decimals, dates and times as fields of tuples."""

import datetime
from decimal import Decimal

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

VALUES = [
    (
        True, Decimal("12.50"), datetime.date(2026, 2, 28), datetime.time(23, 59, 58, 250_000),
        2**40, 1.25, "text",
    ),
]  # fmt: skip

TYPES = [
    Types.BOOLEAN(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIME(), Types.LONG(), Types.DOUBLE(),
    Types.STRING(),
]  # fmt: skip


def next_day(value):
    flag, price, day, time, *rest = value
    return not flag, price * 2, day + datetime.timedelta(days=1), time, *rest


def run(env: StreamExecutionEnvironment):
    values = env.from_collection(VALUES, Types.TUPLE(TYPES)).map(next_day, Types.TUPLE(TYPES))
    with values.execute_and_collect() as results:
        return list(results)
