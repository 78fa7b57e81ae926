"""Writes text files and reads what they say."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy


def run(env: StreamExecutionEnvironment):
    with tempfile.TemporaryDirectory() as folder:
        sink = (
            FileSink.for_row_format(folder, Encoder.simple_string_encoder())
            .with_output_file_config(
                OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".txt").build()
            )
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build()
        )
        env.from_collection(["one", "two", "three"], Types.STRING()).map(str.upper, Types.STRING()).sink_to(
            sink
        )
        env.execute("write words")
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        lines = [line for path in sorted(files) for line in path.read_text().splitlines()]
        names = {path.name.split("-")[0].lstrip(".") + path.suffix for path in files}
    return {"lines": lines, "names": sorted(names)}
