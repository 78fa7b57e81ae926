"""The tutorial: the words of a file are counted in the mode BATCH, and written to files with a prefix."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)

TEXT = """\
To be, or not to be,--that is the question:--

Whether 'tis nobler in the mind to suffer
To die,--to sleep,--
To sleep! perchance to dream
"""


def run(env: StreamExecutionEnvironment):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in.txt").write_text(TEXT)

        def split(line):
            yield from line.split()

        lines = env.from_source(
            source=FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{folder}/in.txt")
            .process_static_file_set()
            .build(),
            watermark_strategy=WatermarkStrategy.for_monotonous_timestamps(),
            source_name="file_source",
        )
        counts = (
            lines.flat_map(split)
            .map(lambda i: (i, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
            .key_by(lambda i: i[0])
            .reduce(lambda i, j: (i[0], i[1] + j[1]))
        )
        counts.sink_to(
            sink=FileSink.for_row_format(base_path=f"{folder}/out", encoder=Encoder.simple_string_encoder())
            .with_output_file_config(
                OutputFileConfig.builder().with_part_prefix("prefix").with_part_suffix(".ext").build()
            )
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build()
        )
        env.execute()
        written = [path for path in Path(folder, "out").rglob("*") if path.is_file()]
        names = {(path.name.partition("-")[0], path.suffix) for path in written}
        return {
            "names": sorted(names),
            "lines": sorted(line for path in written for line in path.read_text().splitlines()),
        }
