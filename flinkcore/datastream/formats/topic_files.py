"""The files into which a sink writes the records of topics: lines of text, or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from flinkcore.common.serialization import BulkWriter, SerializationSchema, SimpleStringSchema
from flinkcore.datastream.connectors.base import SinkWriter, WriterContext
from flinkcore.datastream.connectors.file_system.file_sink import (
    BucketAssigner,
    FileSink,
    FileWriter,
    OutputFileConfig,
    PendingFile,
    RollingPolicy,
)
from flinkcore.datastream.connectors.kafka.kafka_sink import KafkaRecordSerializationSchema
from flinkcore.datastream.formats.arrow_format import BatchWriter
from flinkcore.datastream.formats.json import JsonRowSerializationSchema
from flinkcore.errors import DataError, FlinkcoreError, UserCodeError, in_words

TopicFormat: TypeAlias = Literal["lines", "parquet"]

FORMATS: Final[tuple[TopicFormat, ...]] = ("lines", "parquet")

Record: TypeAlias = tuple[bytes | None, bytes | None]
"""Key and value."""


@dataclass(frozen=True)
class TopicFilesSink(FileSink):
    """Writes the records of each topic into files of a directory of its name; all appear at the end, or none.

    Values of texts and of rows as JSON are lines, if there are no keys; other records are rows of Parquet with the
    columns ``key``, ``value`` and ``topic``, as a dump has them.

    Parameters
    ----------
    base_path : str
        Directory of the topics' directories.
    format : None
        There is one for each topic.
    serializer : KafkaRecordSerializationSchema
    topic_format : {"lines", "parquet"} or None
        Format of all topics, or None for the choice that is described above.
    """

    format: Any = None
    policy: RollingPolicy = field(default_factory=RollingPolicy.on_checkpoint_rolling_policy)
    serializer: KafkaRecordSerializationSchema = field(kw_only=True)
    topic_format: TopicFormat | None = field(kw_only=True, default=None)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        serializer = self.serializer
        kind = self.topic_format or _format_of(serializer)

        def open_topic(topic: str) -> FileWriter:
            open_writer: Callable[[BinaryIO], BulkWriter] = (
                (lambda file: _LineWriter(file, topic))
                if kind == "lines"
                else (lambda file: _RecordWriter(file, topic))
            )
            return FileWriter(
                str(Path(self.base_path, topic)),
                open_writer,
                BucketAssigner.base_path_bucket_assigner(),
                self.policy,
                OutputFileConfig(part_suffix=".parquet" if kind == "parquet" else _suffix(serializer.value)),
                context.current_processing_time,
                context.run_id,
            )

        return _TopicWriter(serializer, open_topic)

    def __str__(self) -> str:
        return f"of the topics' files in {self.base_path}"


def _format_of(serializer: KafkaRecordSerializationSchema) -> TopicFormat:
    """Return the format that holds whatever the schemas give, as far as that is known."""
    return "lines" if serializer.key is None and _is_text(serializer.value) else "parquet"


def _is_text(schema: SerializationSchema) -> bool:
    if isinstance(schema, SimpleStringSchema):
        return schema.charset in ("utf-8", "ascii", "iso8859-1")
    return isinstance(schema, JsonRowSerializationSchema)


def _suffix(schema: SerializationSchema) -> str:
    return ".json" if isinstance(schema, JsonRowSerializationSchema) else ".txt"


class _TopicWriter(SinkWriter):
    """Writes each element to the files of its topic."""

    def __init__(
        self, serializer: KafkaRecordSerializationSchema, open_topic: Callable[[str], FileWriter]
    ) -> None:
        self._serializer = serializer
        self._open_topic = open_topic
        self._writers: dict[str, FileWriter] = {}

    def write(self, element: Any) -> None:
        """Write a record; UserCodeError if a schema or the choice of a topic fails, DataError if it does not fit."""
        serializer = self._serializer
        topic = serializer.topic if isinstance(serializer.topic, str) else self._chosen(element)
        key = None if serializer.key is None else _serialized(serializer.key, element)
        value = _serialized(serializer.value, element)
        writer = self._writers.get(topic)
        if writer is None:
            writer = self._writers[topic] = self._open_topic(topic)
        writer.write((key, value))

    def _chosen(self, element: Any) -> str:
        assert not isinstance(self._serializer.topic, str)
        try:
            topic = self._serializer.topic(element)
        except Exception as failure:
            raise UserCodeError(
                f"the topic selector failed at {element!r:.200}: {in_words(failure)}"
            ) from failure
        if not isinstance(topic, str) or not topic or topic in (".", "..") or "/" in topic or "\0" in topic:
            raise DataError(
                f"the topic selector gave {topic!r:.80} for {element!r:.200}, and a topic has another name"
            )
        return topic

    def prepare_commit(self) -> list[PendingFile]:
        return [pending for writer in self._writers.values() for pending in writer.prepare_commit()]

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


def _serialized(schema: SerializationSchema, element: Any) -> bytes | None:
    try:
        return schema.serialize(element)
    except FlinkcoreError:
        raise
    except Exception as failure:
        raise UserCodeError(
            f"the serializer {type(schema).__name__} failed at {element!r:.200}: {in_words(failure)}"
        ) from failure


class _LineWriter(BulkWriter):
    """Writes values as lines."""

    def __init__(self, file: BinaryIO, topic: str) -> None:
        self._file = file
        self._topic = topic

    def add_element(self, element: Record) -> None:
        key, value = element
        if key is not None or value is None or b"\n" in value or value.endswith(b"\r"):
            what = "a key" if key is not None else "no value" if value is None else "a line break"
            raise DataError(
                f"a record for topic {self._topic!r} has {what}, and a line is a value alone: {value!r:.200}. Write "
                "Parquet: replace_sink(..., format='parquet'), or --sink-format parquet"
            )
        self._file.write(value + b"\n")

    def finish(self) -> None:
        """Do nothing: lines are written at once."""


class _RecordWriter(BatchWriter):
    """Writes keys, values and the topic as columns of Parquet."""

    def __init__(self, file: BinaryIO, topic: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._topic = topic
        self._schema = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string())])
        super().__init__(pq.ParquetWriter(file, self._schema), f"records of topic {topic!r} are not bytes")

    def _checked(self, element: Any) -> Any:
        return element

    def _batch(self, elements: list[Any]) -> Any:
        import pyarrow as pa

        keys, values = zip(*elements, strict=True)
        topics = pa.repeat(self._topic, len(elements))
        return pa.RecordBatch.from_arrays(
            [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), topics], schema=self._schema
        )
