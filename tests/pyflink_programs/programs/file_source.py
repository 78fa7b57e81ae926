"""Reads lines of a text file."""

import tempfile
from pathlib import Path

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat


def run(env: StreamExecutionEnvironment):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.txt"
        path.write_text("to be or\nnot to be\n\nthat is it\n")
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
        lengths = (
            env.from_source(
                source.process_static_file_set().build(),
                WatermarkStrategy.for_monotonous_timestamps(),
                "words",
            )
            .flat_map(lambda line: line.split(), Types.STRING())
            .map(lambda word: (word, len(word)), Types.TUPLE([Types.STRING(), Types.INT()]))
        )
        with lengths.execute_and_collect() as results:
            return list(results)
