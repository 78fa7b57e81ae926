"""Rows that say whether they insert, update or delete: made, read and kept through functions, keys and side outputs."""

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessFunction


def row_type():
    return Types.ROW_NAMED(["id", "price"], [Types.STRING(), Types.INT()])


def deleted():
    return OutputTag("deleted", row_type())


class Changes(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        name, before, after = value
        if before is None:
            yield Row(id=name, price=after)
        elif after is None:
            row = Row(id=name, price=before)
            row.set_row_kind(RowKind.DELETE)
            yield deleted(), row
        else:
            old, new = Row(id=name, price=before), Row(id=name, price=after)
            old.set_row_kind(RowKind.UPDATE_BEFORE)
            new.set_row_kind(RowKind.UPDATE_AFTER)
            yield from (old, new)


def told(row):
    return f"{row.get_row_kind()} {row.id} {row['price']}"


def run(env: StreamExecutionEnvironment):
    given = [("a", None, 1), ("b", None, 2), ("a", 1, 3)]

    def changes(further=()):
        return env.from_collection([*given, *further]).process(Changes(), row_type())

    outputs = {"rows": list(changes().execute_and_collect())}
    outputs["told"] = list(changes().map(told, Types.STRING()).execute_and_collect())
    outputs["filtered"] = list(
        changes().filter(lambda row: row.get_row_kind() != RowKind.UPDATE_BEFORE).execute_and_collect()
    )
    outputs["keyed"] = list(
        changes()
        .key_by(lambda row: row.id, Types.STRING())
        .reduce(lambda one, other: Row(id=other.id, price=one.price + other.price))
        .execute_and_collect()
    )
    outputs["deleted"] = list(
        changes([("b", 2, None), ("a", 3, 4)]).get_side_output(deleted()).execute_and_collect()
    )
    return outputs
