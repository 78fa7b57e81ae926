"""What the simple string encoder writes of rows, tuples, lists, maps and bytes, and of a keyed stream."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink

ORDERED = False

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


def run(env: StreamExecutionEnvironment):
    numbers = env.from_collection([1], Types.INT())
    streams = {
        "row": numbers.map(lambda n: Row("a", None, n), Types.ROW([Types.STRING(), Types.STRING(), Types.INT()])),
        "nested": numbers.map(
            lambda n: (n, Row({"k": [n]}, True, 1e10)),
            Types.TUPLE([
                Types.INT(),
                Types.ROW([Types.MAP(Types.STRING(), Types.LIST(Types.INT())), Types.BOOLEAN(), Types.DOUBLE()]),
            ]),
        ),
        "deleted": numbers.map(lambda n: Row.of_kind(RowKind.DELETE, n), Types.ROW([Types.INT()])),
        "bytes": env.from_collection(
            [(1, bytearray(b"flink\xff"))], Types.ROW([Types.INT(), Types.PICKLED_BYTE_ARRAY()])
        ),
        "keyed": env.from_collection([("a", 1), ("b", 2), ("a", 3)], PAIR).key_by(lambda pair: pair[0], Types.STRING()),
        "united": env.from_collection([("a", 1), ("b", 2)], PAIR)
        .key_by(lambda pair: pair[0], Types.STRING())
        .union(env.from_collection([("c", 3)], PAIR)),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name, stream in streams.items():
            stream.sink_to(
                FileSink.for_row_format(f"{folder}/{name}", Encoder.simple_string_encoder()).build()
            )
        env.execute("texts")
        return {
            name: [
                line
                for path in Path(folder, name).rglob("*")
                if path.is_file()
                for line in path.read_text().splitlines()
            ]
            for name in streams
        }
