"""Rows with named fields: read by name and position, made anew, nested."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

ADDRESS = Types.ROW_NAMED(["street", "number"], [Types.STRING(), Types.INT()])


def person(row):
    return Row(name=row.name.title(), age=row["age"] + 1, address=Row(street="Elm", number=len(row)))


def run(env: StreamExecutionEnvironment):
    people = env.from_collection(
        [Row("ann", 41), Row("bob", 17), Row("cy", None)],
        Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]),
    )
    older = people.filter(lambda row: row.age is not None).map(
        person,
        Types.ROW_NAMED(["name", "age", "address"], [Types.STRING(), Types.INT(), ADDRESS]),
    )
    with older.execute_and_collect() as results:
        rows = list(results)
    return {
        "rows": rows,
        "dicts": [row.as_dict(True) for row in rows],
        "streets": [row.address.street for row in rows],
    }
