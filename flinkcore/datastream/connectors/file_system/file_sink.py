"""Sinks of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from flinkcore.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connectors.base import Sink, SinkWriter, WriterContext
from flinkcore.datastream.connectors.file_system.bucket_assigner import BucketAssigner
from flinkcore.datastream.connectors.file_system.file_writer import FileWriter, PendingFile
from flinkcore.datastream.connectors.file_system.output_file_config import OutputFileConfig
from flinkcore.datastream.connectors.file_system.rolling_policy import RollingPolicy
from flinkcore.errors import ConfigurationError, SourceError, UnsupportedOperationError


@dataclass(frozen=True)
class FileSink(Sink):
    """Writes elements into files of a directory; all of them appear when the job has come to its end, or none.

    Made by :meth:`for_row_format` or :meth:`for_bulk_format`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.FileSink``. Buckets are by the job's clock, which begins at 0.
    """

    base_path: str
    format: Encoder | BulkWriterFactory
    buckets: BucketAssigner = field(default_factory=BucketAssigner.date_time_bucket_assigner)
    policy: RollingPolicy = field(default_factory=RollingPolicy.default_rolling_policy)
    names: OutputFileConfig = field(default_factory=OutputFileConfig)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSinkBuilder:
        """Return the builder of a sink that writes elements one by one.

        Raises
        ------
        ConfigurationError
            If the path is no text, or the encoder none.
        """
        if not isinstance(encoder, Encoder):
            raise ConfigurationError(
                f"for_row_format takes an encoder such as Encoder.simple_string_encoder(), not {encoder!r}"
            )
        return FileSinkBuilder(FileSink(_folder(base_path), encoder))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSinkBuilder:
        """Return the builder of a sink that writes elements in batches.

        Raises
        ------
        ConfigurationError
            If the path is no text, or the factory none.
        """
        if not isinstance(writer_factory, BulkWriterFactory):
            raise ConfigurationError(
                f"for_bulk_format takes a factory such as ParquetBulkWriters.for_row_type(...), not {writer_factory!r}"
            )
        policy = RollingPolicy.on_checkpoint_rolling_policy()
        return FileSinkBuilder(FileSink(_folder(base_path), writer_factory, policy=policy))

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Return the writer of a subtask's files."""
        return FileWriter(
            self.base_path,
            self._open_writer(context.type_info),
            self.buckets,
            self.policy,
            self.names,
            context.current_processing_time,
        )

    def _open_writer(self, type_info: TypeInformation) -> Callable[[BinaryIO], BulkWriter]:
        if isinstance(self.format, BulkWriterFactory):
            return self.format.create
        encode = self.format.encode
        return lambda file: _EncodingWriter(file, lambda element: encode(element, type_info))

    def commit(self, committables: Sequence[PendingFile]) -> None:
        """Give all files their names.

        Raises
        ------
        SourceError
            If one cannot be renamed.
        """
        for pending in committables:
            try:
                os.replace(pending.hidden, pending.visible)
            except OSError as failure:
                raise SourceError(f"{pending.visible} cannot be made visible: {failure}") from failure

    def discard(self, committables: Sequence[PendingFile]) -> None:
        """Remove files that are not to appear."""
        for pending in committables:
            with suppress(OSError):
                os.remove(pending.hidden)

    def __str__(self) -> str:
        return f"of files in {self.base_path}"


class _EncodingWriter(BulkWriter):
    def __init__(self, file: BinaryIO, encode: Callable[[Any], bytes]) -> None:
        self._file = file
        self._encode = encode

    def add_element(self, element: Any) -> None:
        self._file.write(self._encode(element))

    def finish(self) -> None:
        """All is written."""


class FileSinkBuilder:
    """Says how files are written.

    Notes
    -----
    Follows ``FileSink.RowFormatBuilder`` and ``FileSink.BulkFormatBuilder`` of PyFlink.
    """

    def __init__(self, sink: FileSink) -> None:
        self._sink = sink

    def with_bucket_check_interval(self, interval: int) -> FileSinkBuilder:
        """Accept an interval, which has no meaning here: files are looked at when they are written to."""
        return self

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSinkBuilder:
        """Set which directory an element is written to."""
        self._sink = replace(self._sink, buckets=bucket_assigner)
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSinkBuilder:
        """Set how files are named."""
        self._sink = replace(self._sink, names=output_file_config)
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSinkBuilder:
        """Set when another file is begun."""
        self._sink = replace(self._sink, policy=rolling_policy)
        return self

    def enable_compact(self, strategy: Any, compactor: Any) -> FileSinkBuilder:
        """Raise an UnsupportedOperationError: files are not compacted."""
        raise UnsupportedOperationError(
            "enable_compact: files are not compacted; a larger part_size in with_rolling_policy(...), or a smaller "
            "parallelism of the sink, gives fewer files"
        )

    def disable_compact(self) -> FileSinkBuilder:
        """Let files not be compacted, as they are not anyway."""
        return self

    def build(self) -> FileSink:
        """Return the sink."""
        return self._sink


def _folder(base_path: object) -> str:
    if isinstance(base_path, str) and base_path.startswith("file://"):
        base_path = base_path[len("file://") :]
    if not isinstance(base_path, str | os.PathLike) or "://" in str(base_path):
        raise ConfigurationError(f"a file sink writes into a local directory, not {base_path!r}")
    return os.fspath(base_path)
