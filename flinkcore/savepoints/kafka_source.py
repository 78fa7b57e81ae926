"""State of KafkaSource: the offsets from which a Flink job continues to read the partitions of its topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from flinkcore.errors import SavepointError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.next_offsets import NextOffsets, OffsetsByTopic

READER_STATE: Final = "SourceReaderState"
"""State of the readers of a source: where they read on in their splits."""

_NO_OFFSET: Final = -(1 << 63)
_STARTS: Final = {-1: "latest", -2: "earliest", -3: "committed", _NO_OFFSET: "not known yet"}
_ASSIGNED: Final = 0
_STATUSES: Final = (0, 1)
_SPLIT_VERSION: Final = 0
_COORDINATOR_VERSION: Final = 1
_ENUMERATOR_VERSION: Final = 1
_ENUMERATOR_VERSIONS: Final = (1, 2, 3)


class KafkaSplit(NamedTuple):
    """A partition of a topic as a source reads it.

    Attributes
    ----------
    topic : str
    partition : int
    offset : int
        The next offset; a negative number says how the partition begins: see `start`.
    """

    topic: str
    partition: int
    offset: int

    @property
    def start(self) -> str:
        """The next offset as text, or how the partition begins if none has been read."""
        return _STARTS.get(self.offset, str(self.offset))


def splits_of(
    elements: Iterable[bytes | None], coordinator: bytes | None, file: str
) -> list[KafkaSplit] | None:
    """Return the splits of a KafkaSource, of its readers and those that no reader has yet; None for another source.

    A savepoint does not name the class of a source: bytes are taken for those of KafkaSource if they are right to the
    last one.

    Parameters
    ----------
    elements : iterable of bytes
        Elements of the state of the readers.
    coordinator : bytes or None
        State of the coordinator.
    file : str
        Name of the savepoint's file.

    Notes
    -----
    ``KafkaPartitionSplitSerializer`` and ``KafkaSourceEnumStateSerializer`` of Flink's connector; the coordinator's
    state is that of ``SourceCoordinator``.
    """
    try:
        found = [_read_element(ByteReader(element or b"", file)) for element in elements]
        known = {(each.topic, each.partition) for each in found}
        waiting = [] if coordinator is None else _read_coordinator(ByteReader(coordinator, file))
    except SavepointError:
        return None
    found += [each for each in waiting if (each.topic, each.partition) not in known]
    return sorted(found) or None


def offsets_by_topic(splits: Iterable[KafkaSplit]) -> OffsetsByTopic:
    """Return the next offsets of the partitions that a source reads, by topic, and how the others begin."""
    found = OffsetsByTopic()
    for split in splits:
        of_topic = found.setdefault(split.topic, NextOffsets())
        if split.offset >= 0:
            of_topic[split.partition] = split.offset
        else:
            of_topic.starts[split.partition] = split.start
    return found


def written_readers(topics: Mapping[str, Mapping[int, int]]) -> list[bytes]:
    """Return the elements of the state of the readers of a source that continues at the given offsets."""
    elements = []
    for topic, offsets in topics.items():
        for partition, offset in offsets.items():
            split = ByteWriter().utf(topic).integer(partition).integer(offset, 8).integer(_NO_OFFSET, 8)
            elements.append(ByteWriter().integer(_SPLIT_VERSION).integer(split.size).add(split.data()).data())
    return elements


def written_coordinator(topics: Mapping[str, Mapping[int, int]]) -> bytes:
    """Return the state of the coordinator of a source whose readers have all partitions.

    The enumerator has its version 1, which the connectors of all releases since Flink 1.13 read: partitions that it
    does not list have appeared since, and are read from their earliest offset.
    """
    listed = [(topic, partition) for topic, offsets in topics.items() for partition in offsets]
    enumerator = ByteWriter().integer(len(listed))
    for topic, partition in listed:
        enumerator.utf(topic).integer(partition)
    writer = ByteWriter().integer(_COORDINATOR_VERSION).integer(_ENUMERATOR_VERSION)
    return writer.integer(enumerator.size).add(enumerator.data()).data()


def _read_element(reader: ByteReader) -> KafkaSplit:
    if reader.integer(4) != _SPLIT_VERSION:
        reader.fail("it is not a split of KafkaSource")
    split = _read_split(reader.nested(reader.count()))
    _end(reader)
    return split


def _read_split(reader: ByteReader) -> KafkaSplit:
    split = KafkaSplit(reader.utf(), reader.integer(4), reader.integer(8))
    stop = reader.integer(8)
    _end(reader)
    if not split.topic or split.partition < 0 or not _is_offset(split.offset) or not _is_offset(stop):
        reader.fail("it is not a split of KafkaSource")
    return split


def _is_offset(number: int) -> bool:
    return number >= 0 or number in _STARTS


def _read_coordinator(reader: ByteReader) -> list[KafkaSplit]:
    """Return the partitions that no reader has yet, with those whose assignment is not known."""
    if reader.integer(4) != _COORDINATOR_VERSION:
        reader.fail("the state of a coordinator has another version")
    version = reader.integer(4)
    if version not in _ENUMERATOR_VERSIONS:
        reader.fail("it is not the state of an enumerator of KafkaSource")
    enumerator = reader.nested(reader.count())
    _end(reader)
    number = enumerator.count()
    if version == 3 and enumerator.integer(4) != _SPLIT_VERSION:
        enumerator.fail("it is not the state of an enumerator of KafkaSource")
    waiting = []
    for _ in range(number):
        if version == 3:
            split = _read_split(enumerator.nested(enumerator.count()))
        else:
            split = KafkaSplit(enumerator.utf(), enumerator.integer(4), _NO_OFFSET)
        status = enumerator.integer(4) if version > 1 else _ASSIGNED
        if status not in _STATUSES:
            enumerator.fail("a partition is neither assigned nor waiting")
        if status != _ASSIGNED:
            waiting.append(split)
    if version > 1:
        enumerator.flag()
    _end(enumerator)
    return waiting


def _end(reader: ByteReader) -> None:
    if reader.left:
        reader.fail(f"{reader.left} bytes are left over")
