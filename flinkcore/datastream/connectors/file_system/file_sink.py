"""The sink that writes files, with its buckets, rolling policies and file names."""

from __future__ import annotations

import glob
import os
import re
import secrets
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone, tzinfo
from pathlib import Path, PurePath
from typing import Any, BinaryIO, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flinkcore._internal.io.free_room import directory_remedy
from flinkcore._internal.io.locations import absolute_location, is_local
from flinkcore.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from flinkcore.common.serializer import Serializer
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connectors.base import Sink, SinkWriter, WriterContext
from flinkcore.errors import (
    ArgumentTypeError,
    ConfigurationError,
    DataError,
    SourceError,
    UnsupportedOperationError,
)

_DIRECTIVES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


class BucketAssigner:
    """Assigns a directory to an element by the job's clock; made by its static methods.

    Parameters
    ----------
    bucket_at : callable
        From a processing time in ms since the epoch to the directory below the sink's.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.BucketAssigner``.
    """

    def __init__(self, bucket_at: Callable[[int], str]) -> None:
        self.bucket_at = bucket_at

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Return an assigner of the sink's base path."""
        return BucketAssigner(lambda time_ms: "")

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """Return an assigner of directories by date and time.

        Parameters
        ----------
        format_str : str
            A Java format with the fields yyyy, MM, dd, HH, mm and ss.
        timezone_id : str, optional
            Such as "Europe/Berlin"; UTC by default, where Flink takes the machine's time zone.

        Raises
        ------
        ConfigurationError
            If the format has other fields, or there is no such time zone.
        """
        try:
            zone: tzinfo = timezone.utc if timezone_id is None else ZoneInfo(timezone_id)
        except (ZoneInfoNotFoundError, ValueError):
            raise ConfigurationError(f"no time zone is named {timezone_id!r}") from None
        if unknown := [field for field in re.findall(r"[A-Za-z]+", format_str) if field not in _DIRECTIVES]:
            raise ConfigurationError(
                f"the format {format_str!r} has the fields {unknown}; there are {', '.join(_DIRECTIVES)}"
            )
        pattern = re.sub(r"[A-Za-z]+", lambda field: _DIRECTIVES[field[0]], format_str)
        return BucketAssigner(lambda time_ms: datetime.fromtimestamp(time_ms / 1000, zone).strftime(pattern))


@dataclass(frozen=True)
class RollingPolicy:
    """Rolls a file when it is too large, too old, or inactive for too long, by the job's clock.

    Parameters
    ----------
    part_size : int
        Maximum size in bytes.
    rollover_interval, inactivity_interval : int
        Maximum age and inactivity in ms.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.RollingPolicy``.
    """

    part_size: int
    rollover_interval: int
    inactivity_interval: int

    def __post_init__(self) -> None:
        if min(self.part_size, self.rollover_interval, self.inactivity_interval) < 1:
            raise ConfigurationError(f"size and intervals of a rolling policy are above 0, not {self}")

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> RollingPolicy:
        """Return a policy by size, age and inactivity.

        Parameters
        ----------
        part_size : int
            Bytes from which on a file is full, above 0.
        rollover_interval, inactivity_interval : int
            Milliseconds since a file was begun, and since it was last written to; above 0.

        Raises
        ------
        ConfigurationError
            If one of them is not above 0.
        """
        return RollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """Return a policy that rolls files at checkpoints only: here, at the end of the job."""
        return RollingPolicy(sys.maxsize, sys.maxsize, sys.maxsize)

    def ends(self, size: int, begun_ms: int, written_ms: int, now_ms: int) -> bool:
        """Return whether to roll a file of `size` bytes, given when it was begun and last written to, and the time."""
        return (
            size >= self.part_size
            or now_ms - begun_ms >= self.rollover_interval
            or now_ms - written_ms >= self.inactivity_interval
        )


@dataclass(frozen=True)
class OutputFileConfig:
    """Prefix and suffix of file names.

    Parameters
    ----------
    part_prefix, part_suffix : str

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.OutputFileConfig``.
    """

    part_prefix: str = "part"
    part_suffix: str = ""

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Return a builder."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return the prefix."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """Return the suffix."""
        return self.part_suffix

    class OutputFileConfigBuilder:
        """Builds an :class:`OutputFileConfig`."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the prefix."""
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the suffix."""
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Return the configuration."""
            return OutputFileConfig(self.part_prefix, self.part_suffix)


@dataclass(frozen=True)
class PendingFile:
    """A file that is complete, and not yet visible.

    Attributes
    ----------
    hidden, visible : str
        Its path before and after the commit.
    """

    hidden: str
    visible: str

    @classmethod
    def of(cls, path: Path) -> PendingFile:
        """Return the file that is to appear at a path."""
        return cls(str(path.with_name(f".{path.name}.inprogress")), str(path))


class PendingFileSerializer(Serializer):
    """Writes pending files to checkpoints, by their visible paths within the folder of the sink.

    Parameters
    ----------
    folder : str
        Folder of the sink; files elsewhere are refused.
    """

    name: ClassVar[str] = "pending file"

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def serialize(self, value: PendingFile) -> bytes:
        return os.path.relpath(value.visible, self._folder).encode()

    def deserialize(self, data: bytes) -> PendingFile:
        path = PurePath(data.decode(errors="replace"))
        if path.is_absolute() or ".." in path.parts or not path.name or "\0" in str(path):
            raise DataError(f"{data!r:.80} is not a file of a sink in {self._folder}")
        return PendingFile.of(Path(self._folder, path))


class _OpenFile:
    def __init__(
        self, pending: PendingFile, open_writer: Callable[[BinaryIO], BulkWriter], now_ms: int
    ) -> None:
        self.pending = pending
        self.file = open(pending.hidden, "wb")  # noqa: SIM115 - closed by the writer
        self.writer = open_writer(self.file)
        self.begun_ms = self.written_ms = now_ms


class FileWriter(SinkWriter):
    """Writes each element to the open file of its bucket.

    Parameters
    ----------
    folder : str
    open_writer : callable
        From an open file to the writer of its elements.
    buckets : BucketAssigner
    policy : RollingPolicy
    names : OutputFileConfig
    now_ms : callable
        Returns the time of the job's clock.
    run_id : str
        With which the names of its files begin.

    Notes
    -----
    Flink's ``FileWriter``: files are ``bucket/prefix-uuid-number suffix``, and hidden until they are committed.
    """

    def __init__(
        self,
        folder: str,
        open_writer: Callable[[BinaryIO], BulkWriter],
        buckets: BucketAssigner,
        policy: RollingPolicy,
        names: OutputFileConfig,
        now_ms: Callable[[], int],
        run_id: str,
    ) -> None:
        self._folder = Path(folder)
        self._open_writer = open_writer
        self._buckets = buckets
        self._policy = policy
        self._names = names
        self._now_ms = now_ms
        self._id = uuid.UUID(run_id + secrets.token_hex(8))
        self._begun = 0
        self._open: dict[str, _OpenFile] = {}
        self._complete: list[PendingFile] = []

    def write(self, element: Any) -> None:
        """Write an element to the file of its bucket; raise SourceError if that fails."""
        now_ms = self._now_ms()
        bucket = self._buckets.bucket_at(now_ms)
        try:
            file = self._open.get(bucket)
            if file is not None and self._policy.ends(
                file.file.tell(), file.begun_ms, file.written_ms, now_ms
            ):
                self._end(bucket)
                file = None
            if file is None:
                file = self._open[bucket] = self._begin(bucket, now_ms)
            file.writer.add_element(element)
            file.written_ms = now_ms
        except OSError as failure:
            raise _unwritten(self._folder / bucket, failure) from failure

    def _begin(self, bucket: str, now_ms: int) -> _OpenFile:
        folder = self._folder / bucket
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._names.part_prefix}-{self._id}-{self._begun}{self._names.part_suffix}"
        self._begun += 1
        return _OpenFile(PendingFile.of(folder / name), self._open_writer, now_ms)

    def _end(self, bucket: str) -> None:
        file = self._open.pop(bucket)
        self._complete.append(file.pending)
        with file.file:
            file.writer.finish()

    def prepare_commit(self) -> list[PendingFile]:
        try:
            for bucket in list(self._open):
                self._end(bucket)
        except OSError as failure:
            raise _unwritten(self._folder, failure) from failure
        complete, self._complete = self._complete, []
        return complete

    def close(self) -> None:
        for file in self._open.values():
            with suppress(Exception), file.file:
                file.writer.finish()  # otherwise a Parquet writer does this when it is garbage-collected
        left = [*(file.pending for file in self._open.values()), *self._complete]
        self._open, self._complete = {}, []
        for pending in left:
            with suppress(OSError):
                os.remove(pending.hidden)


def _unwritten(folder: Path, failure: OSError) -> SourceError:
    return SourceError(
        f"a file in {folder} cannot be written: {failure}. No file of the job appears; give "
        f"the sink {directory_remedy(folder, failure)}",
        file=str(folder),
    )


@dataclass(frozen=True)
class FileSink(Sink):
    """Writes elements to files of a directory; all files appear at the end of the job, or none.

    Made by :meth:`for_row_format` or :meth:`for_bulk_format`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.FileSink``. Buckets are by the job's clock, which begins at 0.
    """

    BaseBuilder: ClassVar[type[FileSinkBuilder]]
    RowFormatBuilder: ClassVar[type[FileSinkBuilder]]
    BulkFormatBuilder: ClassVar[type[FileSinkBuilder]]

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
            If the path is not a local one, or the encoder no Encoder.
        """
        if not isinstance(encoder, Encoder):
            raise ArgumentTypeError(
                f"for_row_format takes an encoder such as Encoder.simple_string_encoder(), not {encoder!r}"
            )
        return FileSinkBuilder(FileSink(_folder(base_path), encoder))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSinkBuilder:
        """Return the builder of a sink that writes elements in batches; errors as of :meth:`for_row_format`."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise ArgumentTypeError(
                f"for_bulk_format takes a factory such as ParquetBulkWriters.for_row_type(...), not {writer_factory!r}"
            )
        policy = RollingPolicy.on_checkpoint_rolling_policy()
        return FileSinkBuilder(FileSink(_folder(base_path), writer_factory, policy=policy))

    def get_transformer(self) -> None:
        """Return None, since files are not compacted: elements are written as they come."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return FileWriter(
            self.base_path,
            self._open_writer(context.type_info),
            self.buckets,
            self.policy,
            self.names,
            context.current_processing_time,
            context.run_id,
        )

    def _open_writer(self, type_info: TypeInformation) -> Callable[[BinaryIO], BulkWriter]:
        if isinstance(self.format, BulkWriterFactory):
            return self.format.create
        encode = self.format.encode
        return lambda file: _EncodingWriter(file, lambda element: encode(element, type_info))

    def committable_serializer(self) -> PendingFileSerializer:
        return PendingFileSerializer(self.base_path)

    def commit(self, committables: Sequence[PendingFile]) -> None:
        for pending in committables:
            if os.path.exists(pending.visible) and not os.path.exists(pending.hidden):
                continue  # committed before
            try:
                os.replace(pending.hidden, pending.visible)
            except OSError as failure:
                raise SourceError(
                    f"{pending.visible} cannot be made visible: {failure}", file=pending.visible
                ) from failure

    def discard(self, committables: Sequence[PendingFile]) -> None:
        for pending in committables:
            with suppress(OSError):
                os.remove(pending.hidden)

    def clean_up(self, run_id: str) -> None:
        writers = str(uuid.UUID(run_id + "0" * 16))[:18]
        hidden = PendingFile.of(Path(f"{glob.escape(self.names.part_prefix)}-{writers}*")).hidden
        for left in Path(self.base_path).rglob(hidden):
            with suppress(OSError):
                left.unlink()

    def __str__(self) -> str:
        return f"of files in {self.base_path}"


class _EncodingWriter(BulkWriter):
    def __init__(self, file: BinaryIO, encode: Callable[[Any], bytes]) -> None:
        self._file = file
        self._encode = encode

    def add_element(self, element: Any) -> None:
        self._file.write(self._encode(element))

    def finish(self) -> None:
        """Do nothing: elements are written at once."""


class FileSinkBuilder:
    """Builds a :class:`FileSink`.

    Notes
    -----
    Follows ``FileSink.RowFormatBuilder`` and ``FileSink.BulkFormatBuilder`` of PyFlink.
    """

    def __init__(self, sink: FileSink) -> None:
        self._sink = sink

    def with_bucket_check_interval(self, interval: int) -> FileSinkBuilder:
        """Accept an interval without an effect: files are checked when they are written to."""
        return self

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSinkBuilder:
        """Set the assigner of directories."""
        self._sink = replace(self._sink, buckets=bucket_assigner)
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSinkBuilder:
        """Set prefix and suffix of file names."""
        self._sink = replace(self._sink, names=output_file_config)
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSinkBuilder:
        """Set the rolling policy."""
        self._sink = replace(self._sink, policy=rolling_policy)
        return self

    def enable_compact(self, strategy: Any, compactor: Any) -> FileSinkBuilder:
        """Raise an UnsupportedOperationError: compaction is not supported."""
        raise UnsupportedOperationError(
            "enable_compact: files are not compacted; a larger part_size in with_rolling_policy(...), or a smaller "
            "parallelism of the sink, gives fewer files"
        )

    def disable_compact(self) -> FileSinkBuilder:
        """Do nothing: files are never compacted."""
        return self

    def build(self) -> FileSink:
        """Return the sink."""
        return self._sink


def _folder(base_path: object) -> str:
    if not isinstance(base_path, str | os.PathLike) or not is_local(base_path):
        raise ConfigurationError(f"a file sink writes into a local directory, not {base_path!r}")
    return absolute_location(base_path)


FileSink.BaseBuilder = FileSink.RowFormatBuilder = FileSink.BulkFormatBuilder = FileSinkBuilder
