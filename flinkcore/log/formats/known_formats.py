"""Choice of a log's file format: the one that the user names, or that of the extensions."""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import pyarrow as pa

from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.avro_format import AvroFormat
from flinkcore.log.formats.columnar_formats import ArrowFormat, ParquetFormat
from flinkcore.log.formats.csv_format import CsvFormat
from flinkcore.log.formats.file_format import FileFormat
from flinkcore.log.formats.json_format import JsonFormat
from flinkcore.log.formats.orc_format import OrcFormat

_FORMATS = {
    "parquet": "parquet",
    "arrow": "arrow",
    "ipc": "arrow",
    "feather": "arrow",
    "orc": "orc",
    "avro": "avro",
    "csv": "csv",
    "tsv": "tsv",
    "json": "json",
}
_EXTENSIONS = {
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "ipc": "arrow",
    "feather": "arrow",
    "orc": "orc",
    "avro": "avro",
    "csv": "csv",
    "tsv": "tsv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
}
_FORMAT_TYPES: dict[str, Callable[..., FileFormat]] = {
    "parquet": ParquetFormat,
    "arrow": ArrowFormat,
    "orc": OrcFormat,
    "avro": AvroFormat,
    "csv": CsvFormat,
    "tsv": CsvFormat,
    "json": JsonFormat,
}
_DEFAULT_OPTIONS: dict[str, dict[str, Any]] = {"tsv": {"delimiter": "\t"}}
_TEXTS = ("csv", "tsv", "json")
_COMPRESSIONS = ("gz", "bz2", "zst", "lz4")


def file_format(
    files: Sequence[LogFile],
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
    given: Mapping[str, pa.DataType] | None = None,
    is_lenient: bool = False,
) -> FileFormat:
    """Return the format of a log's files.

    Parameters
    ----------
    files : sequence of LogFile
        Not empty.
    format : str, optional
        "parquet", "arrow" (also "ipc", "feather"), "orc", "avro", "csv", "tsv" (CSV with tabs) or "json" (lines).
        Guessed from the extensions if not given; CSV, TSV and JSON lines may also end in .gz, .bz2, .zst or .lz4.
    options : mapping, optional
        Parameters of :class:`~flinkcore.log.formats.csv_format.CsvFormat`, ``JsonFormat`` or
        :class:`~flinkcore.log.formats.columnar_formats.ParquetFormat`.
    given : mapping of str to pyarrow.DataType, optional
        Plain types of columns that are not inferred.
    is_lenient : bool
        Whether records of text that cannot be read are rows with `BAD_RECORD`, and not errors.

    Returns
    -------
    FileFormat

    Raises
    ------
    ConfigurationError
        If the format or an option is unknown.
    SourceError
        If an extension says nothing, or the files are of several formats.
    """
    if format is None:
        kind = _guess(files[0])
        for file in files:
            if _guess(file) != kind:
                raise SourceError(
                    f"the files are of several formats: {files[0].name} is {kind}, "
                    f"{file.name} is {_guess(file)}; name one kind with a glob such as '*.parquet', or "
                    "give format=",
                    file=file.name,
                )
    elif isinstance(format, str) and format in _FORMATS:
        kind = _FORMATS[format]
    else:
        raise ConfigurationError(f"format {format!r} is unknown; known are {', '.join(_FORMATS)}")
    parameters = signature(_FORMAT_TYPES[kind]).parameters
    known = [name for name in parameters if parameters[name].kind is not Parameter.KEYWORD_ONLY]
    if options is not None and not isinstance(options, Mapping):
        raise ConfigurationError(
            f"format_options is a mapping of options to values, such as {{'delimiter': ';'}}, not {options!r}"
        )
    for option in options or {}:
        if option not in known:
            raise ConfigurationError(
                f"format_options: {option!r} is not an option of {kind}, which takes {', '.join(known) or 'none'}"
            )
    settings = {"given": given, "is_lenient": is_lenient}
    return _FORMAT_TYPES[kind](
        **(_DEFAULT_OPTIONS.get(kind, {}) | dict(options or {})),
        **{name: value for name, value in settings.items() if name in parameters},
    )


def kind_by_name(file: LogFile) -> str | None:
    """Return the kind of format that the extension of a file says, before that of a compression, or None."""
    parts = file.path.rsplit("/", 1)[-1].lower().split(".")
    at = -2 if _is_packed(parts) else -1
    return _EXTENSIONS.get(parts[at]) if len(parts) > 1 else None


def is_columnar(file: LogFile) -> bool:
    """Return whether a file has columns, as its extension says, and is not text."""
    return kind_by_name(file) not in (None, *_TEXTS)


def _is_packed(parts: Sequence[str]) -> bool:
    return len(parts) > 2 and parts[-1] in _COMPRESSIONS


def _guess(file: LogFile) -> str:
    kind = kind_by_name(file)
    packed = _is_packed(file.path.rsplit("/", 1)[-1].lower().split("."))
    if kind is None or (packed and kind not in _TEXTS):
        raise SourceError(
            f"the extension of {file.name} is not that of a format. Known are "
            f"{', '.join('.' + extension for extension in _EXTENSIONS)}; CSV and JSON may also end in "
            f"{', '.join('.' + extension for extension in _COMPRESSIONS)}: give format=, or name the files with a glob",
            file=file.name,
        )
    return kind
