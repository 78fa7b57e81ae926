"""Files of text that a job writes."""

from pathlib import Path

from flinkcore.common import Encoder
from flinkcore.datastream.connectors.file_system import FileSink


def line_sink(folder: Path) -> FileSink:
    return FileSink.for_row_format(str(folder), Encoder.simple_string_encoder()).build()


def lines_in(folder: Path) -> list[str]:
    """The lines of all files, none of which is hidden, as those are that are not committed."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith(".")]
    return sorted(line for path in files for line in path.read_text().splitlines())
