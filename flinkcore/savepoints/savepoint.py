"""Savepoints of Flink: operators with their states, read without Java."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeVar

import pyarrow as pa

from flinkcore._internal.io.stores import Stores, stores_of
from flinkcore.errors import ConfigurationError, SavepointError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.handles import KeyGroupsHandle, OperatorStateHandle
from flinkcore.savepoints.kafka_source import READER_STATE, KafkaSplit, offsets_by_topic, splits_of
from flinkcore.savepoints.key_groups import KeyGroupsFile
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.metadata import Metadata, OperatorMetadata, read_metadata
from flinkcore.savepoints.next_offsets import OffsetsByTopic
from flinkcore.savepoints.operator_ids import operator_id
from flinkcore.savepoints.operator_state import OperatorState, OperatorStateFile
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.serializers.snapshots import StateDescription
from flinkcore.savepoints.state import ReadSettings, SavepointState
from flinkcore.savepoints.state_headers import read_keyed_header, read_operator_header
from flinkcore.savepoints.state_streams import SavepointDirectory

_METADATA: Final = "_metadata"
_MOST_METADATA_BYTES: Final = 1 << 31
_HEADERS_AT_ONCE: Final = 8

_Each = TypeVar("_Each")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class SavepointOperator:
    """An operator of a savepoint.

    Attributes
    ----------
    metadata : OperatorMetadata
    received : mapping of str to sequence of pyarrow.RecordBatch, or None
        Entries of its keyed states, in a task that has received those of its keys.
    """

    directory: SavepointDirectory = field(repr=False)
    settings: ReadSettings = field(repr=False)
    metadata: OperatorMetadata = field(repr=False)
    received: Mapping[str, Sequence[pa.RecordBatch]] | None = field(default=None, repr=False)

    def for_tasks(self) -> SavepointOperator:
        """Return the operator for tasks that read its states; picklable."""
        keyed = (handle.stream for each in self.metadata.subtasks for handle in each.keyed_states)
        others = (handle.stream for each in self.metadata.subtasks for handle in each.operator_states)
        return replace(self, directory=self.directory.for_tasks([*keyed, *others]))

    def __getstate__(self) -> dict[str, Any]:
        # Without the headers of files: a task reads those that it needs.
        return {"directory": self.directory, "settings": self.settings, "metadata": self.metadata}

    @property
    def uid(self) -> str | None:
        """The uid that the program gave it; None if it gave none, or the savepoint is older than metadata version 5."""
        return self.metadata.uid

    @property
    def operator_id(self) -> str:
        """The hash of the uid, or of the operator's place in the job: 32 hexadecimal digits."""
        return self.metadata.operator_id

    @property
    def parallelism(self) -> int:
        """Number of subtasks that wrote the savepoint."""
        return self.metadata.parallelism

    @property
    def max_parallelism(self) -> int:
        """The number of key groups."""
        return self.metadata.max_parallelism

    @cached_property
    def states(self) -> dict[str, SavepointState]:
        """States by name: keyed states and timers, then operator states.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        UnsupportedSavepointError
            If the serializer of the keys is not known.
        """
        states: dict[str, SavepointState] = dict(self._keyed_states())
        for name, state in self._operator_states().items():
            # An operator may use one name for both.
            states[name if name not in states else f"{name} (operator state)"] = state
        return states

    def state(self, name: str) -> SavepointState:
        """Return a state by its name.

        Raises
        ------
        ConfigurationError
            If there is no such state.
        """
        if name not in self.states:
            stopped = "".join(f". {reason}" for reason in self.unread)
            raise ConfigurationError(
                f"operator {self.uid or self.operator_id!r} has no state {name!r}; it has {list(self.states)}{stopped}"
            )
        return self.states[name]

    def kafka_splits(self) -> list[KafkaSplit]:
        """Return the partitions that a KafkaSource reads, in their order; none if the operator is not one.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        """
        states, handle = self._operator_states(), self.metadata.coordinator
        if READER_STATE not in states or states[READER_STATE].undecodable:
            return []
        coordinator = None
        if handle is not None:
            with self.directory.open(handle, self.settings.block_bytes) as stream:
                coordinator = stream.read(0, stream.size)
        elements = states[READER_STATE].to_arrow()["value"].to_pylist()
        if not all(isinstance(element, bytes) for element in elements):
            return []
        return splits_of(elements, coordinator, self.directory.place.name) or []

    def kafka_offsets(self) -> OffsetsByTopic:
        """Return the offsets at which a KafkaSource continues, by topic and partition.

        Partitions of which it has read nothing are in ``starts``.

        Raises
        ------
        ConfigurationError
            If the operator is not a KafkaSource.
        SavepointError
            If a file is damaged or missing.
        """
        splits = self.kafka_splits()
        if not splits:
            raise ConfigurationError(
                f"operator {self.uid or self.operator_id!r} of {self.directory.place.name} has no state of a "
                "KafkaSource; `flinkcore savepoint show` lists the operators that have"
            )
        return offsets_by_topic(splits)

    @cached_property
    def unread(self) -> list[str]:
        """Reasons why there are states of which not even the name is known."""
        reasons = [
            *(file.header.stopped for file in self._keyed_files),
            *(file.header.stopped for file in self._operator_files),
        ]
        return list(dict.fromkeys(reason for reason in reasons if reason is not None))

    @cached_property
    def _keyed_files(self) -> list[KeyGroupsFile]:
        def read(handle: KeyGroupsHandle) -> KeyGroupsFile:
            with self.directory.open(handle.stream, block_bytes=1) as stream:  # nothing but the header
                return KeyGroupsFile(handle, read_keyed_header(stream, handle.first_offset))

        return _at_once(read, (handle for each in self.metadata.subtasks for handle in each.keyed_states))

    @cached_property
    def _operator_files(self) -> list[OperatorStateFile]:
        def read(part: tuple[int, OperatorStateHandle]) -> OperatorStateFile:
            subtask, handle = part
            with self.directory.open(handle.stream, self.settings.block_bytes) as stream:
                return OperatorStateFile(subtask, handle, read_operator_header(stream, stream.size))

        parts = ((each.index, handle) for each in self.metadata.subtasks for handle in each.operator_states)
        return _at_once(read, parts)

    def _keyed_states(self) -> dict[str, KeyedState]:
        types: dict[str, KeyedTypes] = {}
        files: dict[str, list[KeyGroupsFile]] = {}
        for file in self._keyed_files:
            for state in file.header.states:
                with _contradictions(self, state.name):
                    of_file = KeyedTypes.of(file.header.key, state)
                    types[state.name] = types[state.name].merged(of_file) if state.name in types else of_file
                files.setdefault(state.name, []).append(file)
        states = {
            name: KeyedState(
                self.directory, self.settings, name, each.kind, self.max_parallelism, each, tuple(files[name])
            )
            for name, each in types.items()
        }
        if self.received is None:
            return states
        return {name: state.received(self.received.get(name, ())) for name, state in states.items()}

    def _operator_states(self) -> dict[str, OperatorState]:
        found: dict[str, tuple[StateSerializer | None, StateSerializer]] = {}
        modes: dict[str, str] = {}
        files: dict[str, list[OperatorStateFile]] = {}
        for file in self._operator_files:
            for state in file.header.states:
                with _contradictions(self, state.name):
                    types = _operator_types(state)
                    if state.name in found:
                        key, value = found[state.name]
                        types = (
                            None if key is None or types[0] is None else key.merged(types[0]),
                            value.merged(types[1]),
                        )
                found[state.name] = types
                default = state.options.get("OPERATOR_STATE_DISTRIBUTION_MODE", "SPLIT_DISTRIBUTE")
                modes[state.name], _ = file.handle.offsets.get(
                    state.name, (modes.get(state.name, default), ())
                )
                files.setdefault(state.name, []).append(file)
        return {
            name: OperatorState(self.directory, self.settings, name, modes[name], *types, tuple(files[name]))
            for name, types in found.items()
        }


def _operator_types(state: StateDescription) -> tuple[StateSerializer | None, StateSerializer]:
    return state.serializers.get("KEY_SERIALIZER"), state.serializers["VALUE_SERIALIZER"]


class _contradictions:
    """Raises errors of types as those of a savepoint."""

    def __init__(self, operator: SavepointOperator, state: str) -> None:
        self._operator = operator
        self._state = state

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError):
            operator = self._operator
            raise SavepointError(
                f"{operator.directory.place.name} is damaged, or of a job that flinkcore does not know: operator "
                f"{operator.uid or operator.operator_id}, state {self._state!r}: {error}",
                file=operator.directory.place.name,
            ) from None


def _at_once(read: Callable[[_Each], _Made], parts: Iterable[_Each]) -> list[_Made]:
    each = list(parts)
    if len(each) < 2:
        return [read(part) for part in each]
    with ThreadPoolExecutor(min(len(each), _HEADERS_AT_ONCE)) as pool:
        return list(pool.map(read, each))


@dataclass(frozen=True)
class Savepoint:
    """A savepoint, or a checkpoint of the heap backend, of Flink 1.11 to 2.3.

    Attributes
    ----------
    version : int
        Version of the metadata.
    checkpoint_id : int
    operators : list of SavepointOperator
    """

    directory: SavepointDirectory = field(repr=False)
    metadata: Metadata = field(repr=False)
    operators: list[SavepointOperator]

    @property
    def path(self) -> str:
        """Its directory, as a local path or a URI."""
        return self.directory.place.name

    @property
    def version(self) -> int:
        return self.metadata.version

    @property
    def checkpoint_id(self) -> int:
        return self.metadata.checkpoint_id

    def operator(self, uid: str) -> SavepointOperator:
        """Return an operator by its uid or its id.

        Raises
        ------
        ConfigurationError
            If there is no such operator.
        """
        wanted = {uid, operator_id(uid)}
        for operator in self.operators:
            if operator.uid == uid or operator.operator_id in wanted:
                return operator
        raise ConfigurationError(
            f"{self.path} has no operator {uid!r}; it has {[each.uid or each.operator_id for each in self.operators]}"
        )


def open_savepoint(
    path: str | os.PathLike[str],
    *,
    exact: bool = False,
    filesystem: Any = None,
    settings: ReadSettings | None = None,
) -> Savepoint:
    """Open a savepoint: read its metadata, and nothing of its states yet.

    Parameters
    ----------
    path : path
        Directory of the savepoint, local or a URI of a store, or its file ``_metadata``.
    exact : bool
        Keep the values for which usual types of Arrow have no place: texts become binary values, in which half of a
        surrogate pair is encoded like a character; dates, local date-times and instants become texts in ISO 8601; maps
        become lists, whose keys may be null. Otherwise such values are errors.
    filesystem : pyarrow.fs.FileSystem, fsspec filesystem or None
        Where the files are; by default the path says it, with the usual settings of stores.
    settings : ReadSettings or None
        Sizes of batches and blocks.

    Raises
    ------
    SavepointError
        If there is no savepoint, or its metadata is damaged.
    UnsupportedSavepointError
        If the metadata has another version, or the states are in RocksDB's own format.
    ConfigurationError
        If the path is empty.
    """
    location = os.fspath(path)
    if not location:
        raise ConfigurationError("the path of a savepoint is empty; give a directory")
    return savepoint_in(path, stores_of(filesystem), settings or ReadSettings(exact=exact))


def savepoint_in(
    path: str | os.PathLike[str], stores: Stores, settings: ReadSettings | None = None
) -> Savepoint:
    """Open a savepoint with settings of stores; see `open_savepoint`."""
    location = os.fspath(path)
    place = stores.locate(location.removesuffix(f"/{_METADATA}"))
    directory = SavepointDirectory(place, stores)
    content = directory.read(_METADATA, _MOST_METADATA_BYTES)
    metadata = read_metadata(ByteReader(content, place.below(_METADATA).name))
    used = settings or ReadSettings()
    operators = [SavepointOperator(directory, used, each) for each in metadata.operators]
    return Savepoint(directory, metadata, operators)
