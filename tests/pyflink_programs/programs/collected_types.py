"""What a program collects of elements with declared types."""

import datetime

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    day, moment = datetime.date(2021, 1, 2), datetime.datetime(2021, 1, 2, 3, 4, 5, 678901)
    collections = {
        "floats": (Types.FLOAT(), [0.1, 1.0, 1e10, 3.4e-5, 1 / 3]),
        "doubles": (Types.DOUBLE(), [0.1, 1 / 3, 1e300]),
        "days": (Types.SQL_DATE(), [day, moment, datetime.date(1969, 12, 31)]),
        "times of day": (Types.SQL_TIME(), [moment.time()]),
        "tuples": (Types.TUPLE([Types.FLOAT(), Types.SQL_DATE()]), [(0.1, day), [1 / 3, day]]),
        "rows": (
            Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.FLOAT()]),
            [Row(a=1, b=0.1), {"b": 0.5, "a": 2}, (3, 1 / 3), Row(b=0.25, a=4)],
        ),
        "kinds of rows": (Types.ROW([Types.INT()]), [Row.of_kind(RowKind.DELETE, 1)]),
        "maps": (Types.MAP(Types.STRING(), Types.DOUBLE()), [{"a": 0.1}, {}]),
        "arrays": (Types.PRIMITIVE_ARRAY(Types.FLOAT()), [[0.1, 1 / 3]]),
        "arrays with gaps": (Types.BASIC_ARRAY(Types.STRING()), [["a", None]]),
        "big numbers": (Types.BIG_INT(), [2**70]),
    }
    outputs = {}
    for name, (type_info, elements) in collections.items():
        with env.from_collection(elements, type_info).execute_and_collect() as results:
            outputs[name] = list(results)
    return outputs
