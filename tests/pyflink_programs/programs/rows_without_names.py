"""Rows with positions only."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    pairs = env.from_collection(
        [Row(1, "one"), Row(2, "two"), Row(3, None)], Types.ROW([Types.INT(), Types.STRING()])
    )
    swapped = pairs.map(lambda row: Row(row[1], row[0] * 2), Types.ROW([Types.STRING(), Types.INT()]))
    with swapped.execute_and_collect() as results:
        rows = list(results)
    return {
        "rows": rows,
        "dicts": [row.as_dict() for row in rows],
        "kinds": [str(row.get_row_kind()) for row in rows],
    }
