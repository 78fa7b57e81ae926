"""States of PyFlink's operators: values as its coders and pickles have them, by the descriptors of the program.

In process mode the names of states begin with `python-state-`; each is a list or a map of bytes, of which some hold
several elements. In thread mode states have Java's types, but pickled accumulators and elements of windows.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flinkcore._native.keys import dictionary_key
from flinkcore.datastream.state import MapStateDescriptor, StateDescriptor
from flinkcore.errors import DataError
from flinkcore.operators.state import KeyedStateSnapshot
from flinkcore.savepoints.pyflink_coders import TIME_WINDOWS, CoderBytes, coder_of, is_bytes

Read = Callable[[CoderBytes], Any]


class _PlainUnpickler(pickle.Unpickler):
    """Reads pickles of plain values: numbers, texts, bytes, and containers of them. Nothing is imported or called."""

    def find_class(self, module: str, name: str) -> Any:
        raise ValueError(
            f"a pickle has an object of {module}.{name}, which is not made without your consent. If you trust the "
            "savepoint, give SavepointSource(..., allow_pickle=True)"
        )


@dataclass(frozen=True)
class PyFlinkStates:
    """Keyed states of a PyFlink operator.

    Parameters
    ----------
    descriptors : mapping of str to StateDescriptor
        Descriptors of the program, by name.
    allow_pickle : bool
        Whether pickles may have objects of any class.
    """

    descriptors: Mapping[str, StateDescriptor]
    allow_pickle: bool

    def unpickled(self, data: bytes) -> Any:
        """Return the value of a pickle: a plain one, or any if pickles are allowed.

        Raises
        ------
        DataError
            If it is damaged, or has an object that is not plain.
        """
        try:
            if self.allow_pickle:
                return pickle.loads(data)
            return _PlainUnpickler(io.BytesIO(data)).load()
        except Exception as failure:
            raise DataError(f"a pickled value of {len(data):,} bytes cannot be read: {failure}") from None

    def obstacle(self, name: str) -> str | None:
        """Return why a state of process mode cannot be read, or None if it can."""
        descriptor = self.descriptors.get(name)
        if descriptor is None:
            return (
                "PyFlink's process mode keeps bytes, whose types the program declares. Give its descriptor: "
                "FlinkOperator(uid, descriptors=[ValueStateDescriptor(...), ...])"
            )
        keys = [descriptor.key_type_info] if isinstance(descriptor, MapStateDescriptor) else []
        try:
            for each in (*keys, descriptor.type_info):
                self._reader(each)
        except NotImplementedError as failure:
            return str(failure)
        return None

    def _reader(self, type_info: Any) -> Read:
        return coder_of(type_info, self.unpickled).read

    def of_process_mode(self, name: str, raw: KeyedStateSnapshot) -> KeyedStateSnapshot:
        """Return a state of process mode, with the kind and the values that its descriptor declares.

        Raises
        ------
        DataError
            If the bytes are not those of such values.
        """
        if name == "merging-window-set":
            windows = [
                {_one(key, TIME_WINDOWS.read): _one(value, TIME_WINDOWS.read) for key, value in held.items()}
                for held in raw.values
            ]
            return replace(raw, type=StateDescriptor.Type.VALUE, values=windows)
        descriptor = self.descriptors[name]
        read = self._reader(descriptor.type_info)
        has_ttl = raw.ttl_time is not None
        try:
            if isinstance(descriptor, MapStateDescriptor):
                read_key = self._reader(descriptor.key_type_info)
                values: list[Any] = [
                    {
                        dictionary_key(_one(key, read_key)): _stamped(
                            value, has_ttl, lambda data: _one(data, read)
                        )
                        for key, value in held.items()
                    }
                    for held in raw.values
                ]
            else:
                values = [
                    [element for blob in held for element in _elements(blob, has_ttl, read)]
                    for held in raw.values
                ]
                if descriptor.type is not StateDescriptor.Type.LIST:
                    values = [_single(held) for held in values]
        except (ValueError, ArithmeticError, struct.error, UnicodeDecodeError) as failure:
            raise DataError(
                f"state {name!r} of PyFlink does not hold what its descriptor declares, {descriptor!r}: {failure}"
            ) from None
        return replace(raw, type=descriptor.type, values=values)

    def of_thread_mode(self, name: str, raw: KeyedStateSnapshot) -> KeyedStateSnapshot:
        """Return a state of thread mode, with the kind of its descriptor, and its pickles read."""
        descriptor = self.descriptors.get(name)
        if descriptor is None:
            return raw
        has_ttl = raw.ttl_time is not None

        def value_of(value: Any) -> Any:
            is_pickle = isinstance(value, bytes) and not is_bytes(descriptor.type_info)
            return self.unpickled(value) if is_pickle else value

        def held_of(held: Any) -> Any:
            if isinstance(held, dict):
                return {key: _stamped(value, has_ttl, value_of) for key, value in held.items()}
            if isinstance(held, list) and descriptor.type is StateDescriptor.Type.LIST:
                return [_stamped(value, has_ttl, value_of) for value in held]
            return _stamped(held, has_ttl, value_of)

        return replace(raw, type=descriptor.type, values=[held_of(held) for held in raw.values])


def _one(blob: bytes, read: Read) -> Any:
    data = CoderBytes(blob)
    found = read(data)
    if data.has_more:
        raise ValueError(f"{len(blob) - data.at:,} bytes are left over")
    return found


def _elements(blob: Any, has_ttl: bool, read: Read) -> list[Any]:
    """Return the elements that PyFlink has written together, with the time of their last access if they expire."""
    bytes_of_all, stamp = blob if has_ttl else (blob, None)
    data, found = CoderBytes(bytes_of_all), []
    while data.has_more:
        before = data.at
        found.append(read(data))
        if data.at == before:
            raise ValueError("an element takes no bytes")
    return [(each, stamp) for each in found] if has_ttl else found


def _single(held: list[Any]) -> Any:
    if len(held) != 1:
        raise ValueError(f"a key has {len(held)} values instead of one")
    return held[0]


def _stamped(value: Any, has_ttl: bool, convert: Callable[[Any], Any]) -> Any:
    if value is None:
        return None
    return (convert(value[0]), value[1]) if has_ttl else convert(value)


def descriptors_by_name(descriptors: Sequence[StateDescriptor]) -> dict[str, StateDescriptor]:
    """Return descriptors by their names."""
    return {descriptor.name: descriptor for descriptor in descriptors}
